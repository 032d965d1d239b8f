"""Two linear layers, whose weights torchao stores in 4 bits."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 128), nn.Linear(128, 10)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def build():
    from torchao.quantization import IntxWeightOnlyConfig, PerGroup, quantize_

    torch.manual_seed(0)
    net = Net().eval()
    quantize_(net, IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)))
    return net, (torch.randn(1, 64),)


def training():
    import torch.ao.quantization as quantization

    net = nn.Sequential(nn.Linear(64, 10)).train()
    net.qconfig = quantization.get_default_qat_qconfig("x86")
    net = quantization.prepare_qat(net)
    net(torch.randn(8, 64))
    return net, (torch.randn(1, 64),)
