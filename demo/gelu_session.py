"""A session with the Python API: fused-gelu against torch's own result. Usage: python gelu_session.py STORE"""

import sys

import torch
from torch.nn import functional

from runtime import Host

torch.manual_seed(0)
x, bias = torch.randn(512, 1024), torch.randn(1, 1024)
with Host(sys.argv[1]) as host:
    fused = host.load("fused-gelu")(x, bias)
own = functional.gelu(x + bias)
# The tolerances are torch's own for float32: 1.3e-6 relative, 1e-5 absolute.
torch.testing.assert_close(fused, own)
difference = (fused - own).abs().max().item()
print(f"differs from torch.nn.functional.gelu by at most {difference:.1e}, over {fused.numel()} values")
