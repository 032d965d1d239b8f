"""Provides sessions of runtimes that prepare a model for all sizes if they can, and otherwise for the sizes of the
inputs."""

from __future__ import annotations

from onnxsmith.runtimes._isolated import Turn
from onnxsmith.runtimes._lacking import by_name, refuse_defaults
from onnxsmith.runtimes.base import Feeds, Outputs


class SizedTurn(Turn):
    """Holds a session whose child says whether it runs the model with symbols. The child says so in `shapes`, after
    preparing and with every answer. The head also has `inputs`: the inputs that can be given."""

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
        """Records whether the last run or the next run uses the model with symbols."""
        ports = self.signature.inputs
        fixed = all(port.shape is not None and all(isinstance(dim, int) for dim in port.shape) for port in ports)
        symbolic = self.head["shapes"] == "symbolic"
        self.is_built = fixed or symbolic
        how = ", symbolic shapes" if symbolic else ", shapes fixed to those of the inputs"
        self.provider = self.isolated.what if fixed else f"{self.isolated.what}{how}"
