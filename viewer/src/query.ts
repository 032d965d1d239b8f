/** Takes a query apart into its words, and says which texts each of them matches. */

export type Kind = "name" | "operator" | "type" | "attribute" | "module" | "source" | "tensor" | "room" | "reader";
export const KINDS: Kind[] = ["name", "operator", "tensor", "type", "attribute", "module", "source", "room", "reader"];

/** How a kind is written before a word: "op:conv" looks at operators only. */
const PREFIXES: Record<string, Kind> = {
  name: "name",
  op: "operator",
  operator: "operator",
  type: "type",
  shape: "type",
  dtype: "type",
  attr: "attribute",
  attribute: "attribute",
  module: "module",
  source: "source",
  line: "source",
  tensor: "tensor",
  value: "tensor",
  room: "room",
  level: "room",
  reads: "reader",
  readers: "reader",
};

/** The forms of a query, for the help: as it is written, and what it finds. */
export const FORMS: [string, string][] = [
  ["conv 3x3", "what has all of these words, each in any field"],
  ["op:conv", "operators only; also name: type: attr: module: source: tensor: level:"],
  ["strides=2,2", "an attribute with this value; strides=2 where one of the values is 2"],
  ["3×224  3x224  3,224", "a shape, or a part of one"],
  ["reads:mask", "the nodes that read a tensor"],
  ['"x + y"', "these words beside each other"],
];

export interface Term {
  /** The field that it looks at; null: any. */
  kind: Kind | null;
  /** In small letters. */
  words: string;
  /** Of "name=value"; null for others. */
  attribute: { name: string; value: string } | null;
}

/** The words of a query: all have to hold. Spaces after a comma and after a prefix do not end a word, nor do those in quotes. */
export function parse(text: string): Term[] {
  const joined = text.replace(/,\s+/g, ",").replace(/(\w+):\s+/g, (all, name) => (PREFIXES[name.toLowerCase()] ? `${name}:` : all));
  return (joined.match(/(?:"[^"]*"?|[^\s"])+/g) ?? []).map(term).filter(({ words }) => words);
}

function term(text: string): Term {
  const found = /^(\w+):(.*)$/s.exec(text);
  const kind = found ? PREFIXES[found[1].toLowerCase()] : undefined;
  // "a::b" is a part of a name, not a prefix.
  const isPrefixed = found && kind && !found[2].startsWith(":");
  const words = (isPrefixed ? found[2] : text).replace(/"/g, "").toLowerCase();
  const pair = /^(\w+)[=:]([^:=].*)$/s.exec(words);
  return { kind: isPrefixed ? kind : null, words, attribute: pair && { name: pair[1], value: pair[2] } };
}

/** Whether a text of a kind has a word. For an attribute the text is "name=value". */
export function matcher({ words, attribute }: Term, kind: Kind): (text: string) => boolean {
  if (kind === "attribute") return attributeMatcher(words, attribute);
  if (kind !== "type") return (text) => text.toLowerCase().includes(words);
  const has = [...new Set([listed(words), plain(words)])].map(within);
  return (text) => has.some((one) => one(plain(text)));
}

function attributeMatcher(words: string, wanted: Term["attribute"]): (text: string) => boolean {
  const has = within(listed(words));
  const value = wanted && bare(listed(wanted.value));
  return (text) => {
    const small = text.toLowerCase();
    if (!wanted || value === null) return small.includes(words) ? !isNumbers(words) || has(plain(small)) : has(plain(small));
    const at = small.indexOf("=");
    if (!small.slice(0, at).startsWith(wanted.name)) return false;
    const held = bare(plain(small.slice(at + 1)));
    if (!isNumbers(value)) return held.includes(value) || held.split(",").some((one) => sameNumber(one, value));
    return held === value || (!value.includes(",") && held.split(",").some((one) => sameNumber(one, value)));
  };
}

/** Whether two texts stand for the same number, which a file may hold as float32: 1e-5 is 9.999999747378752e-06 there. */
function sameNumber(one: string, other: string): boolean {
  const [a, b] = [Number(one), Number(other)];
  return one !== "" && other !== "" && (a === b || Math.fround(a) === Math.fround(b));
}

/** Without spaces, and with commas between dimensions. */
function plain(text: string): string {
  return text.toLowerCase().replace(/\s+/g, "").replace(/×/g, ",");
}

/** The same of what was typed, where an x stands for ×, too: "3x224" is "3,224". */
function listed(text: string): string {
  return plain(text).replace(/(\w)x(?=\d)/g, "$1,");
}

/** A value without brackets and quotes. */
function bare(text: string): string {
  return text.replace(/[[\]()'"]/g, "");
}

function isNumbers(text: string): boolean {
  return /^[\d,]+$/.test(text);
}

/** Numbers match whole ones: "3,3" is not in "3,32", nor "32" in "float32". */
function within(wanted: string): (text: string) => boolean {
  if (!isNumbers(wanted)) return (text) => text.includes(wanted);
  const whole = new RegExp(`(?<![\\w.])${wanted}(?![\\w.])`);
  return (text) => whole.test(text);
}
