"""Policies for programs that know nothing of this one: ONNX files, each beside a contract in JSON."""

from ncap.export.contract import contract as contract
from ncap.export.writing import export_onnx as export_onnx
