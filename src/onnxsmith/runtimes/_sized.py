"""Sessions of runtimes that prepare a model for all sizes if they can, and else for the sizes of the inputs."""

from __future__ import annotations

from onnxsmith.runtimes._isolated import Turn
from onnxsmith.runtimes._lacking import by_name, refuse_defaults
from onnxsmith.runtimes.base import Feeds, Outputs


class SizedTurn(Turn):
    """A session whose child says in `shapes`, when it prepares and with every answer, whether it ran the model with
    symbols. The head also has `inputs`: those that can be given."""

    def begin(self) -> None:
        super().begin()
        self._tell()

    def run(self, feeds: Feeds) -> Outputs:
        refuse_defaults(self.isolated.what, self.signature, feeds, self.head["inputs"])
        outputs = super().run(feeds)
        self.head["shapes"] = str(outputs.pop("shapes"))
        self._tell()
        return by_name(self.isolated.what, self.signature, outputs)

    def _tell(self) -> None:
        """Says whether the last run, or the next one, is of the model with symbols."""
        ports = self.signature.inputs
        fixed = all(port.shape is not None and all(isinstance(dim, int) for dim in port.shape) for port in ports)
        symbolic = self.head["shapes"] == "symbolic"
        self.is_built = fixed or symbolic
        how = ", symbolic shapes" if symbolic else ", shapes fixed to those of the inputs"
        self.provider = self.isolated.what if fixed else f"{self.isolated.what}{how}"
