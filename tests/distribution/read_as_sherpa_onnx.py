"""Reads a context binary as sherpa-onnx's QNN runtime does, in a process of its own: it loads Qualcomm's libQnnSystem.

`python -m tests.distribution.read_as_sherpa_onnx LIBRARY FILE` prints JSON. The calls and their order are those of its
public sources (csrc/qnn/qnn-model.cc, utils.cc): the interface of libQnnSystem, systemContextCreate,
systemContextGetBinaryInfo on the whole file in memory, then version 3 of the information and of the first graph's, and
each tensor's name, type and dimensions. Only the layouts of the structures are qnn-forge's.
"""

from __future__ import annotations

import ctypes
import json
import sys
from ctypes import POINTER, byref, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from qnn.binary import layout

# Qnn_DataType_t (QnnTypes.h) of what it exchanges → bytes of an element.
ELEMENT_BYTES = {0x0216: 2, 0x0232: 4, 0x0032: 4, 0x0416: 2}


def read(library: str, file: str) -> dict[str, Any]:
    """Version of the information, how many graphs, and the first graph's name and tensors with their sizes in bytes.

    A tensor of a type that it does not exchange has the size None.
    """
    get_providers = layout.GetProvidersFn(("QnnSystemInterface_getProviders", ctypes.CDLL(library)))
    providers = POINTER(POINTER(layout.InterfaceC))()
    count = c_uint32()
    assert get_providers(byref(providers), byref(count)) == 0
    assert count.value >= 1
    interface = providers[0].contents
    handle = c_void_p()
    assert interface.create(byref(handle)) == 0
    content = Path(file).read_bytes()
    buffer = ctypes.create_string_buffer(content, len(content))
    information, size = POINTER(layout.BinaryC)(), c_uint64()
    try:
        found = interface.get_binary_info(
            handle, ctypes.addressof(buffer), len(content), byref(information), byref(size)
        )
        assert found == 0, found
        binary = information.contents
        document: dict[str, Any] = {"version": binary.version}
        if binary.version == 3:
            graph = binary.value.v3.graphs[0]
            document["graphs"] = binary.value.v3.graph_count
            document["first"] = {
                "version": graph.version,
                "name": graph.v3.name.decode(),
                "inputs": [_tensor(graph.v3.inputs[index]) for index in range(graph.v3.input_count)],
                "outputs": [_tensor(graph.v3.outputs[index]) for index in range(graph.v3.output_count)],
            }
        return document
    finally:
        interface.free(handle)


def _tensor(tensor: layout.TensorC) -> dict[str, Any]:
    known = tensor.value.v1  # version 2 begins as version 1
    shape = [known.dimensions[index] for index in range(known.rank)]
    elements = 1
    for length in shape:
        elements *= length
    each = ELEMENT_BYTES.get(known.data_type)
    return {"name": known.name.decode(), "shape": shape, "bytes": None if each is None else elements * each}


if __name__ == "__main__":
    print(json.dumps(read(*sys.argv[1:])))
