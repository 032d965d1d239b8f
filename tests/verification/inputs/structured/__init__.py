"""Models that need structured inputs, by what they need."""

from tests.verification.inputs.structured import (
    counts,
    fitting,
    floats,
    graphs,
    kinds,
    lengths,
    pictures,
    tables,
    tuples,
)

MODELS = {
    name: model
    for room in (graphs, tables, lengths, pictures, counts, tuples, kinds, floats, fitting)
    for name, model in room.MODELS.items()
}
