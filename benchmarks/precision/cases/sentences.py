"""A sentence encoder, all-MiniLM-L6-v2 out of the package of that name, on pairs of sentences written for this file.

Of each three sentences the second says what the first says, and the third is about the same things but says something
else. A pair is of the same meaning (2), of the same subject (1) or of two subjects (0). The metric is the rank
correlation of these numbers with the cosines.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from precision import training

NAME = "sentences"
BETTER = "higher"
THREES = """
The cat sleeps on the sofa. | A cat is napping on the couch. | The cat scratched the sofa to pieces.
He missed the last train home. | The final train left without him. | The train was clean and almost empty.
The soup needs more salt. | There is not enough salt in the soup. | She spilled the soup on the carpet.
Our flight was delayed by fog. | Because of fog the plane took off late. | Our flight served a good breakfast.
The company dismissed fifty workers. | Fifty employees lost their jobs at the firm. | The company opened a shop abroad.
She plays the violin very well. | She is an excellent violinist. | She sold her violin last year.
It has been raining since Monday. | The rain began on Monday and has not stopped. | Monday was the hottest day.
The bridge is closed for repairs. | Repairs keep the bridge shut. | The bridge was painted by a famous artist.
He quit smoking two years ago. | Two years ago he gave up cigarettes. | He began to smoke two years ago.
The museum is free on Sundays. | You need not pay for the museum on Sundays. | The museum shows old ships.
My phone battery is empty. | There is no charge left in my phone. | My phone takes beautiful photographs.
The children built a snowman. | A man of snow was made by the kids. | The children were too ill to play in the snow.
The doctor told him to rest. | He was advised by his physician to take it easy. | The doctor moved to a larger practice.
Prices rose faster than wages. | Pay did not keep up with the cost of living. | Wages are paid at the end of the month.
The thief was caught by the police. | Officers arrested the burglar. | The police bought new cars.
We planted apple trees behind the house. | Behind our home we put in some apple trees. | The apples were sour and small.
The lecture was very boring. | The talk put everyone to sleep. | The lecture begins at nine o'clock.
She speaks four languages. | She knows four languages fluently. | She teaches languages at a small school.
The river flooded the village. | Water from the river covered the village. | The village lies far from any river.
The software crashed again. | Once more the program stopped working. | The software costs ten dollars a month.
He is afraid of dogs. | Dogs frighten him. | He feeds his two dogs every morning.
The meeting was moved to Friday. | They postponed the meeting until Friday. | The meeting produced no result.
The cake is still in the oven. | The cake has not finished baking. | The cake was eaten by the guests.
Many tourists visit the castle. | The castle attracts a lot of travellers. | The castle belongs to an old family.
The old bicycle has a flat tyre. | There is no air in the tyre of the old bike. | He rode his bicycle across France.
The election was won by a narrow margin. | The winner of the vote was only just ahead. | The election is held in May.
I forgot my umbrella on the bus. | My umbrella was left behind on the bus. | The bus driver carried an umbrella.
The new law protects the forests. | Woodland is protected by new legislation. | The forest burned for three days.
Her brother is taller than she is. | She is shorter than her brother. | Her brother lives in Canada.
The hotel room was dirty. | Our room at the hotel had not been cleaned. | The hotel room had a view of the sea.
The goalkeeper saved a penalty. | A penalty kick was stopped by the keeper. | The goalkeeper joined another club.
Bread is made of flour and water. | To make bread you need water and flour. | The bread at that bakery is expensive.
The moon was full last night. | Last night there was a full moon. | A rocket flew to the moon.
He repaired the washing machine himself. | He fixed the washer without help. | He bought a washing machine on credit.
The shop closes at six. | After six o'clock the store is shut. | The shop sells toys and books.
She was late because of traffic. | Heavy traffic held her up. | The traffic lights were changed last week.
The horse jumped over the fence. | Over the fence leaped the horse. | The farmer painted the fence for his horses.
Their house burned down. | A fire destroyed their home. | They rented their house to students.
The exam was harder than expected. | Nobody thought that the test would be so difficult. | The exam takes two hours.
Bees make honey. | Honey is produced by bees. | He was stung by a bee.
The king had three daughters. | Three daughters were born to the king. | The king went to war with his neighbour.
The printer is out of paper. | There is no paper left in the printer. | The printer was connected by a cable.
He lent me his car. | I was allowed to use his car. | His car was stolen in the night.
The patient recovered quickly. | The sick man soon got well again. | The patient waited four hours for the doctor.
The wine tastes of cherries. | There is a flavour of cherry in this wine. | The wine was bottled in Italy.
The ship sank in a storm. | A storm sent the vessel to the bottom of the sea. | The ship was built in Norway.
The teacher praised the pupils. | The pupils were commended by their teacher. | The teacher left the school in summer.
Solar panels cover the roof. | The roof is full of solar panels. | The roof leaks when it rains.
She painted the kitchen yellow. | The kitchen was given a coat of yellow paint. | She cooked in a very small kitchen.
The concert was sold out. | There were no more tickets for the concert. | The concert was broadcast on the radio.
The baby cried all night. | All night long the infant was weeping. | The baby has blue eyes.
The scientists discovered a new planet. | A planet not known before was found by researchers. | The planet has no water.
He lost his keys in the park. | His keys went missing in the park. | The park is locked with a key at night.
The farmer sold his cows. | The cows were bought from the farmer. | The farmer milks his cows at dawn.
The bank raised its interest rate. | Borrowing from the bank has become dearer. | The bank was robbed on Tuesday.
The film made us laugh. | We found the movie very funny. | The film lasted more than three hours.
Two boys are playing football. | A pair of boys kick a ball around. | Two boys are watching football on television.
The mountain is covered with snow. | Snow lies on the mountain. | The mountain was climbed by two women.
The letter never arrived. | I did not receive the letter. | The letter was written in green ink.
The lamp in the hall is broken. | The light in the hallway does not work. | The lamp in the hall is made of brass.
"""
TEST_THREES = 40


def prepare(folder: Path) -> Path:
    """Export the encoder with its mean of the tokens, with a dynamic batch and length."""
    import torch
    from torch import nn
    from transformers import AutoModel

    path = folder / "sentences.onnx"
    if path.exists():
        return path
    source = folder / "all-MiniLM-L6-v2"
    with zipfile.ZipFile(_package()) as packed:
        packed.extractall(source)

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = AutoModel.from_pretrained(source, attn_implementation="eager")

        def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            hidden = self.network(input_ids=tokens, attention_mask=mask).last_hidden_state
            weights = mask.unsqueeze(-1).to(hidden.dtype)
            return nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1), dim=-1)

    feeds = next(samples())[0]
    example = tuple(torch.from_numpy(feeds[name]) for name in ("tokens", "mask"))
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=512)
    sizes = {0: batch, 1: length}
    return training.export(Encoder().eval(), example, path, ["tokens", "mask"], (sizes, sizes))


def _package() -> Path:
    import importlib.util

    spec = importlib.util.find_spec("all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("model.zip")


@cache
def _tokenizer() -> object:
    from tokenizers import Tokenizer

    with zipfile.ZipFile(_package()) as packed:
        tokenizer = Tokenizer.from_str(packed.read("tokenizer.json").decode("utf-8"))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    return tokenizer


def _feeds(pair: tuple[str, str]) -> dict[str, np.ndarray]:
    encoded = _tokenizer().encode_batch(list(pair))  # type: ignore[attr-defined]
    return {
        "tokens": np.array([one.ids for one in encoded], np.int64),
        "mask": np.array([one.attention_mask for one in encoded], np.int64),
    }


def _items(threes: list[list[str]]) -> Iterator[tuple[dict[str, np.ndarray], int]]:
    for number, (first, same, other) in enumerate(threes):
        foreign = threes[(number + 7) % len(threes)][1]
        for second, label in ((same, 2), (other, 1), (foreign, 0)):
            yield _feeds((first, second)), label


def _threes() -> list[list[str]]:
    return [[part.strip() for part in line.split("|")] for line in THREES.strip().splitlines()]


def samples() -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """120 pairs."""
    return _items(_threes()[:TEST_THREES])


def calibration() -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """60 pairs of other sentences."""
    return _items(_threes()[TEST_THREES:])


def decode(outputs: dict[str, np.ndarray]) -> float:
    """The cosine of the two sentences."""
    first, second = outputs["output"].astype(np.float64)
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def rank_correlation(predictions: list[float], labels: list[int]) -> float:
    """Spearman's correlation, ties at their mean rank."""
    return float(np.corrcoef(_ranks(np.array(predictions)), _ranks(np.array(labels)))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    return (values[:, None] > values).sum(1) + (values[:, None] == values).sum(1) / 2


METRIC = rank_correlation
