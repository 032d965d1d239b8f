/** Builds the page: `node build.mjs [--into FOLDER]`, or the tests: `node build.mjs --tests FOLDER`. */

import { build } from "esbuild";
import { readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const after = (flag, otherwise) => {
  const place = process.argv.indexOf(flag);
  return place < 0 ? otherwise : process.argv[place + 1];
};

// The same bytes on every machine: no source maps, no paths, nothing that depends on the day.
const page = {
  bundle: true,
  minify: true,
  charset: "utf8",
  target: "es2022",
  legalComments: "none",
  absWorkingDir: here,
  logLevel: "warning",
};

const tests = after("--tests", "");
if (tests) {
  const folder = join(here, tests);
  rmSync(folder, { recursive: true, force: true });
  const files = readdirSync(join(here, "tests")).filter((file) => file.endsWith(".test.ts"));
  await build({
    ...page,
    minify: false,
    platform: "node",
    format: "esm",
    entryPoints: files.map((file) => join("tests", file)),
    outdir: folder,
    outExtension: { ".js": ".mjs" },
  });
} else {
  const into = after("--into", join(here, "../src/onnxsmith/viewer/page"));
  await build({ ...page, format: "iife", entryPoints: ["src/main.ts"], outfile: join(into, "viewer.js") });
  await build({ ...page, entryPoints: ["src/viewer.css"], outfile: join(into, "viewer.css") });
}
