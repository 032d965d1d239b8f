"""Each kind of condition: a node that it refuses, with the reason, one that fits, one that cannot be judged."""

from __future__ import annotations

import pytest

from tests.targets.profiles.asking import told

FITS = ("fits", "")
CONV = "g (float[1,3,8,8] x, float[4,3,3,3] w) => (y) { y = Conv%s(x, w) }"


def entry(names: str, conditions: str) -> str:
    return f'[[operators]]\nnames = ["{names}"]\n{conditions}\n'


def relu(shape: str, dtype: str = "float") -> str:
    return f"g ({dtype}{shape} x) => ({dtype}{shape} y) {{ y = Relu(x) }}"


def test_an_operator_that_is_not_listed() -> None:
    assert told(entry("Neg", ""), relu("[2]")) == [("refused", "Relu is not in the table")]
    assert told(entry("Relu", ""), relu("[2]")) == [FITS]


def test_an_unlisted_operator_can_be_unknown_and_a_named_one_refused() -> None:
    start = 'title = "Board"\nunlisted = "unknown"\n'
    graph = "g (float[2] x) => (float[2] y) { a = Neg(x) y = Relu(a) }"
    assert told('refused = ["Neg"]', graph, start=start) == [
        ("refused", "Neg is not supported"),
        ("unknown", "Relu is not in the table"),
    ]


def test_other_domains() -> None:
    graph = "g (float[2] x) => (float[2] y) { y = com.microsoft.Gelu(x) }"
    listed = entry("com.microsoft::Gelu", "")
    assert told("domains = []\n" + listed, graph) == [
        ("refused", "operators of the domain com.microsoft are not supported")
    ]
    assert told('domains = ["com.microsoft"]\n' + listed, graph) == [FITS]
    assert told('domains = ["com.microsoft"]\n', graph) == [("refused", "com.microsoft::Gelu is not in the table")]


@pytest.mark.parametrize(
    ("conditions", "opset", "expected"),
    [
        ("since = 7", 12, ("refused", "Relu has version 6; the target accepts at least 7")),
        ("since = 7", 13, FITS),
        ("until = 13", 14, ("refused", "Relu has version 14; the target accepts at most 13")),
        ("until = 14", 21, FITS),
    ],
)
def test_versions_of_an_operator(conditions: str, opset: int, expected: tuple[str, str]) -> None:
    assert told(entry("Relu", conditions), relu("[2]"), opset=opset) == [expected]


def test_dtypes_of_the_data() -> None:
    gather = "g (float16[4] x, int64[2] i) => (float16[2] y) { y = Gather(x, i) }"
    assert told(entry("Gather", 'dtypes = ["float32", "int8"]'), gather) == [
        ("refused", "data is float16; Gather accepts float32 or int8")
    ]
    assert told(entry("Gather", 'dtypes = ["float16"]'), gather) == [FITS]  # the indices are not data


def test_dtypes_of_an_operand_and_of_a_type_variable() -> None:
    gather = "g (float[4] x, int64[2] i) => (float[2] y) { y = Gather(x, i) }"
    assert told(entry("Gather", 'dtypes = { indices = ["int32"] }'), gather) == [
        ("refused", "indices is int64; Gather accepts int32")
    ]
    assert told(entry("Gather", 'dtypes = { Tind = ["int64"], T = ["float32"] }'), gather) == [FITS]


def test_dtypes_that_are_not_known() -> None:
    graph = "g (float[4] x) => (y) { a = com.microsoft.Mystery(x) y = Relu(a) }"
    profile = entry("Relu", 'dtypes = ["float32"]') + entry("com.microsoft::Mystery", "")
    assert told(profile, graph) == [FITS, ("unknown", "the dtype of X is not known")]
    assert told(entry("Relu", "") + entry("com.microsoft::Mystery", ""), graph) == [FITS, FITS]


def test_dtypes_of_the_whole_target() -> None:
    gather = "g (float[4] x, int64[2] i) => (float[2] y) { y = Gather(x, i) }"
    assert told('dtypes = ["float32"]\n' + entry("Gather", ""), gather) == [
        ("refused", "indices is int64; the target has float32")
    ]
    assert told('dtypes = ["float32", "int64"]\n' + entry("Gather", ""), gather) == [FITS]


def test_doubtful_dtypes() -> None:
    profile = 'doubtful_dtypes = { float64 = "computed in float32" }\n'
    assert told(profile + entry("Relu", ""), relu("[2]", "double")) == [
        ("unknown", "X is float64: computed in float32")
    ]
    own = entry("Relu", 'dtypes = ["float32"]')
    assert told(profile + own, relu("[2]", "double")) == [("refused", "X is float64; Relu accepts float32")]
    assert told('dtypes = ["float32"]\n' + profile + own, relu("[2]", "double")) == [
        ("unknown", "X is float64: computed in float32")
    ]
    assert told(profile + entry("Relu", ""), relu("[2]")) == [FITS]


@pytest.mark.parametrize("where", ["rank = [1, 2]", "ranks = { X = { max = 2 } }"])
def test_ranks(where: str) -> None:
    refused, reason = told(entry("Relu", where), relu("[1,2,3]"))[0]
    assert (refused, reason.partition(";")[0]) == ("refused", "X has rank 3")
    assert told(entry("Relu", where), relu("[n,2]")) == [FITS]


def test_the_largest_rank() -> None:
    assert told("max_rank = 2\n" + entry("Relu", ""), relu("[1,2,3]")) == [
        ("refused", "X has rank 3; the target accepts at most 2")
    ]
    assert told("max_rank = 2\n" + entry("Relu", ""), relu("[]")) == [("unknown", "the rank of X is not known")]
    assert told("max_rank = 2\n" + entry("Relu", ""), relu("[1,2]")) == [FITS]


def test_dimensions() -> None:
    profile = entry("Relu", "dims = { X = { 0 = 1, -1 = { max = 4 } } }")
    assert told(profile, relu("[2,3]")) == [("refused", "dimension 0 of X is 2; the target accepts 1")]
    assert told(profile, relu("[1,5]")) == [("refused", "dimension -1 of X is 5; the target accepts at most 4")]
    assert told(profile, relu("[n,3]")) == [("unknown", "dimension 0 of X is not a fixed size; the target accepts 1")]
    assert told(profile, relu("[1,4]")) == [FITS]


def test_the_largest_dimension() -> None:
    profile = "max_dim = 8\n" + entry("Relu", "")
    assert told(profile, relu("[1,9]")) == [("refused", "dimension 1 of X is 9; the target accepts at most 8")]
    assert told(profile, relu("[n]")) == [
        ("unknown", "dimension 0 of X is not a fixed size; the target accepts at most 8")
    ]
    assert told(profile, relu("[8,8]")) == [FITS]


@pytest.mark.parametrize("whole", [True, False])
def test_fixed_shapes(whole: bool) -> None:
    profile = "static = true\n" + entry("Relu", "") if whole else entry("Relu", 'static = ["X"]')
    assert told(profile, relu("[n,2]")) == [
        ("refused", "X has the symbolic dimension n; the target accepts fixed shapes only")
    ]
    assert told(profile, relu("[]")) == [
        ("unknown", "the shape of X is not known; the target accepts fixed shapes only")
    ]
    assert told(profile, relu("[1,2]")) == [FITS]


def test_constants() -> None:
    profile = entry("Reshape", 'constant = ["shape"]') + entry("Neg", "")
    computed = "g (float[4] x, int64[2] s) => (float[2,2] y) { y = Reshape(x, s) }"
    folds = "g (float[4] x) => (y) { c = Constant<value_ints = [-2, -2]>() s = Neg(c) y = Reshape(x, s) }"
    stored = "g (float[4] x) => (y) { s = Constant<value_ints = [2, 2]>() y = Reshape(x, s) }"
    default = "g (float[4] x, int64[2] s = {2, 2}) => (y) { y = Reshape(x, s) }"
    assert told(profile, computed) == [("refused", "shape must be constant")]
    assert told(profile, folds)[1] == (
        "unknown",
        "shape must be constant, but it is computed from constants; fold it, for example with `onnxsmith simplify`",
    )
    assert told(profile, stored) == [FITS]
    assert told(profile, default) == [("refused", "shape must be constant")]  # the caller may replace a default
    attribute = "g (float[1,4] x) => (y) { y = Squeeze<axes = [0]>(x) }"
    assert told(entry("Squeeze", 'constant = ["axes"]'), attribute, opset=11) == [FITS]


def test_values_of_constants() -> None:
    profile = entry("TopK", "values = { K = { max = 5 } }")
    graph = "g (float[9] x) => (v, i) { k = Constant<value_ints = [%d]>() v, i = TopK(x, k) }"
    assert told(profile, graph % 6) == [("refused", "K is 6; the target accepts at most 5")]
    assert told(profile, graph % 5) == [FITS]
    assert told(profile, "g (float[9] x, int64[1] k) => (v, i) { v, i = TopK(x, k) }") == [
        ("unknown", "the values of K are not known; the target accepts at most 5")
    ]


@pytest.mark.parametrize(
    ("condition", "given", "expected"),
    [
        ("group = 1", "<group = 3>", ("refused", "the attribute group is 3; the target accepts 1")),
        ("group = 1", "", FITS),  # the default of the schema
        ("strides = { max = 2 }", "<strides = [1, 3]>",
         ("refused", "the attribute strides is [1, 3]; the target accepts at most 2")),
        ("strides = { max = 2 }", "", FITS),  # the default that the specification gives in words
        ('auto_pad = ["NOTSET", "VALID"]', '<auto_pad = "SAME_UPPER">',
         ("refused", 'the attribute auto_pad is "SAME_UPPER"; the target accepts one of "NOTSET", "VALID"')),
        ("kernel_shape = 3", "", ("unknown", "the attribute kernel_shape is not known; the target accepts 3")),
    ],
)  # fmt: skip
def test_attributes(condition: str, given: str, expected: tuple[str, str]) -> None:
    assert told(entry("Conv", f"attributes = {{ {condition} }}"), CONV % given) == [expected]


def test_an_attribute_that_is_an_operand_in_this_version() -> None:
    profile = entry("Squeeze", "attributes = { axes = 0 }")
    graph = "g (float[1,1,4] x) => (y) { a = Constant<value_ints = [%d]>() y = Squeeze(x, a) }"
    assert told(profile, graph % 1) == [("refused", "axes is 1; the target accepts 0")]
    assert told(profile, graph % 0) == [FITS]


@pytest.mark.parametrize("name", ["B", "dilations", "Y"])
def test_absent_operands_results_and_attributes(name: str) -> None:
    graph = "g (float[1,1,4] x, float[1,1,1] w, float[1] b) => (y) { y = Conv<dilations = [1]>(x, w, b) }"
    kind = {"B": "operand", "dilations": "attribute", "Y": "result"}[name]
    assert told(entry("Conv", f'absent = ["{name}"]'), graph) == [("refused", f"the {kind} {name} is not supported")]
    assert told(entry("Conv", 'absent = ["auto_pad"]'), graph) == [FITS]


def test_numbers_of_operands_and_results() -> None:
    graph = "g (float[2] x) => (y) { y = Concat<axis = 0>(x, x, x) }"
    assert told(entry("Concat", "inputs = { max = 2 }"), graph) == [
        ("refused", "3 operands are given; the target accepts at most 2")
    ]
    assert told(entry("Concat", "inputs = 3\noutputs = 1"), graph) == [FITS]
    assert told(entry("Concat", "outputs = 2"), graph) == [("refused", "1 results are given; the target accepts 2")]


def test_the_bytes_of_a_tensor() -> None:
    profile = "max_tensor_bytes = 16\n" + entry("Relu", "")
    assert told(profile, relu("[5]")) == [("refused", "X has 20 bytes; the target accepts at most 16")]
    assert told(profile, relu("[n]")) == [("unknown", "the size of X in bytes is not known")]
    assert told(profile, relu("[4]")) == [FITS]


def test_notes() -> None:
    assert told(entry("Relu", 'note = "slow"'), relu("[2]")) == [("fits", "slow")]
    assert told(entry("Relu", 'note = "only small ones"\ndecisive = true'), relu("[2]")) == [
        ("unknown", "only small ones")
    ]
    decisive = 'note = "only small ones"\ndecisive = true\nrank = 3'
    assert told(entry("Relu", decisive), relu("[2]"))[0][0] == "refused"  # what is certain comes first


def test_doubtful_names() -> None:
    profile = entry("Conv", 'doubtful = ["dilations"]\nnote = "only some"')
    assert told(profile, CONV % "<dilations = [1, 1]>") == [("unknown", "dilations is given: only some")]
    assert told(profile, CONV % "") == [("fits", "only some")]


def test_branches_and_bodies() -> None:
    graph = (
        "g (bool c, float[2] x) => (y) { y = If<then_branch = t () => (a) { a = Neg(x) }, "
        "else_branch = e () => (b) { b = Abs(x) }>(c) }"
    )
    listed = entry("If", "") + entry("Neg", "")
    assert told("subgraphs = false\n" + listed, graph)[0] == (
        "refused",
        "branches and loop bodies are not supported",
    )
    assert told(listed, graph) == [FITS, FITS, ("refused", "Abs is not in the table")]


def test_an_operand_that_the_version_calls_otherwise() -> None:
    """`input_mean` of BatchNormalization 15 was `mean` in version 9, and the type variable of `scale` was `T`."""
    graph = "g (float[1,2] x, float[2] s) => (y) { y = BatchNormalization(x, s, s, s, s) }"
    profile = entry("BatchNormalization", 'dtypes = { input_mean = ["float16"] }')
    assert told(profile, graph, opset=9) == [("refused", "mean is float32; BatchNormalization accepts float16")]
    assert told(profile, graph, opset=15) == [("refused", "input_mean is float32; BatchNormalization accepts float16")]
    scale = entry("BatchNormalization", 'dtypes = { T1 = ["float16"] }')
    assert told(scale, graph, opset=9) == [("refused", "scale is float32; BatchNormalization accepts float16")]


def test_an_operand_that_came_later_is_not_given() -> None:
    graph = "g (float[2] x) => (y) { y = Dropout(x) }"
    assert told(entry("Dropout", 'constant = ["training_mode"]'), graph, opset=7) == [FITS]


def test_a_table_that_is_not_certain() -> None:
    profile = entry("Relu", "rank = 3\ncertain = false")
    assert told(profile, relu("[2]")) == [("unknown", "X has rank 1; the target accepts 3")]
    assert told(profile, relu("[2,2,2]")) == [FITS]
