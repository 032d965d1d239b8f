"""Gives a session another interface: other names, or further inputs that the session does not need."""

from __future__ import annotations

from collections.abc import Mapping

from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes.base import Feeds, Outputs, Session


class View(Session):
    """Presents `session` with the interface `signature`. `inputs` maps the view's input names to the session's; inputs
    that only the view has are missing in it. `outputs` maps the session's output names to the view's."""

    def __init__(
        self, session: Session, signature: Signature, inputs: Mapping[str, str], outputs: Mapping[str, str]
    ) -> None:
        self._session = session
        self._inputs = inputs
        self._outputs = outputs
        self.signature = signature
        self.provider = session.provider

    def at(self, level: str) -> Session:
        return View(self._session.at(level), self.signature, self._inputs, self._outputs)

    def close(self) -> None:
        self._session.close()

    def run(self, feeds: Feeds) -> Outputs:
        outputs = self._session.run(
            {self._inputs[name]: value for name, value in feeds.items() if name in self._inputs}
        )
        return {self._outputs.get(name, name): value for name, value in outputs.items()}
