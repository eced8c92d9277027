"""Faults of a graph: what preparation refuses, and operators the compiler has no form for."""

from qnn.errors.base import ExitCode, ForgeError


class NotOnnx(ForgeError):
    """What: The graph's source is not an ONNX model, or only a part of one.

    Why: A download can leave an HTML page, a Git LFS pointer or half a file under the right name; a `file` of
    model.yaml can point at the wrong member of a package. The message says what the file looks like.

    Mend: Open the source's address, correct `file` or the locator in model.yaml, and run `qnn-forge pin` again. A
    model in another format (TFLite, PyTorch, TensorFlow) has to be exported to ONNX first.
    """

    id = "QF401"
    title = "the source is not an ONNX model"
    exit_code = ExitCode.GRAPH


class ExternalDataMissing(ForgeError):
    """What: The model keeps weights in a second file that is not there, or is shorter than the model says.

    Why: ONNX models over 2 GB, and some smaller ones, are an .onnx file and one or more data files which the .onnx
    file names. Both have to lie in the same folder.

    Mend: Add the data file to the sources of model.yaml, or save the model as one file:
    `onnx.save(onnx.load("model.onnx"), "whole.onnx")`.
    """

    id = "QF402"
    title = "a file with the model's weights is missing"
    exit_code = ExitCode.GRAPH


class ExternalDataOutside(ForgeError):
    """What: The model names a weights file outside its own folder.

    Why: A model from the network must not be able to read files elsewhere on this machine, so absolute paths, `..`
    and symbolic links that lead out of the folder are refused.

    Mend: Save the model again with its data beside it (`onnx.save` with `location="model.onnx.data"`). If the model
    is not yours, be suspicious of it.
    """

    id = "QF403"
    title = "the model reaches for a file outside its folder"
    exit_code = ExitCode.GRAPH


class TooNew(ForgeError):
    """What: The model's IR version, or the opset of a domain, is newer than the installed runtime understands.

    Why: Every ONNX release adds a version. A runtime that reads a newer model would have to guess what it means, so
    it refuses.

    Mend: Export the model again with an older opset, or lower it: `onnx.version_converter.convert_version(model, 21)`
    for the opset; for the IR version alone set `model.ir_version` to the newest one named in the message, provided
    the model uses nothing newer. Or install a newer onnxruntime that is a tested pair with onnxruntime-qnn.
    """

    id = "QF404"
    title = "the model is newer than the runtime"
    exit_code = ExitCode.GRAPH


class InputsDiffer(ForgeError):
    """What: The inputs of a graph in model.yaml are not the inputs of the ONNX file.

    Why: Each input must have a fixed shape, so each is declared, by its exact name. Initializers that an old exporter
    listed among the inputs do not count: they are constants.

    Mend: Copy the names from the message, which lists what the file has, into `inputs` of the graph.
    """

    id = "QF405"
    title = "model.yaml declares other inputs than the file has"
    exit_code = ExitCode.GRAPH


class ShapeConflict(ForgeError):
    """What: A shape of model.yaml cannot be the shape of this input: another rank, or another fixed size.

    Why: Sizes that the file leaves open can be fixed freely; sizes it states as numbers were used by the exporter
    inside the graph, where changing them would give a wrong or broken model.

    Mend: Declare the size that the message names, or export the model again with that dimension open.
    """

    id = "QF406"
    title = "a declared shape contradicts the file"
    exit_code = ExitCode.GRAPH


class DynamicDims(ForgeError):
    """What: After all declared shapes were fixed, some tensor still has a dimension that is not a number.

    Why: The NPU's memory is planned while compiling, so every shape must be known then. A shape can stay open for two
    reasons: an input dimension without a value in the bucket, or an operator whose result depends on the data
    (NonZero, Compress, NonMaxSuppression, a Reshape to a computed shape). Such a graph would silently run on the CPU.

    Mend: Give the symbol a value in the bucket. For a data-dependent operator, cut the graph before it and do the
    rest in the application, or replace it by a form of fixed size (TopK, or a mask).
    """

    id = "QF407"
    title = "a dimension is not fixed"
    exit_code = ExitCode.GRAPH


class ControlFlow(ForgeError):
    """What: The graph holds control flow or sequences: If, Loop, Scan, or an operator on sequences or optionals.

    Why: HTP runs a fixed list of operators on tensors. An If whose condition is known when shapes are fixed is
    resolved by itself; what is left depends on the data.

    Mend: Export the branch that is needed (often one model per sample rate or per state), unroll the loop to a fixed
    number of steps, or move the loop into the application and make its body the graph.
    """

    id = "QF408"
    title = "control flow in the graph"
    exit_code = ExitCode.GRAPH


class UndeclaredInt64(ForgeError):
    """What: An input is int64 and model.yaml does not say what to do with it.

    Why: HTP computes in 32 bits: the compiler takes int64 inputs, but cuts every value to int32 without a word, and
    the application must feed twice the bytes. So the choice is the author's.

    Mend: Write `name: {shape: [...], dtype: int32}`: the input becomes int32, followed by an exact Cast. Or
    write `dtype: int64` to keep the input as it is, knowing that only values of 32 bits survive.
    """

    id = "QF409"
    title = "int64 input without a declared dtype"
    exit_code = ExitCode.GRAPH


class UnsupportedDtype(ForgeError):
    """What: An input, an output or a tensor has a type that HTP has no form for (float64, strings, complex, uint64 …),
    or model.yaml asks for a dtype that the input cannot be given.

    Why: HTP knows float32, float16, and integers of 8, 16 and 32 bits (64 bits only at the border of the graph).
    Only an int64 input can be turned into int32 exactly.

    Mend: Export the model in float32. Tokenisation and other string work belongs into the application.
    """

    id = "QF410"
    title = "a type that HTP does not have"
    exit_code = ExitCode.GRAPH


class EmptyTensor(ForgeError):
    """What: A tensor of the graph has a dimension of size 0.

    Why: Exporters of decoders make an empty cache for the first step. QNN has no tensors without elements, and its
    error for them names neither the tensor nor the reason.

    Mend: Export the first step as a graph of its own without the cache, or start with a cache of size 1 that is
    masked out.
    """

    id = "QF411"
    title = "a tensor without elements"
    exit_code = ExitCode.GRAPH


class RandomOperator(ForgeError):
    """What: The graph draws random numbers.

    Why: HTP answers with the same noise on every run, and a result that is random cannot be compared with the float
    model, so nothing could be verified.

    Mend: Make the noise an input of the graph, drawn by the application (VITS and Piper have `noise_scale`; diffusion
    models take the latent), or export with the noise removed.
    """

    id = "QF412"
    title = "random numbers in the graph"
    exit_code = ExitCode.GRAPH


class InvalidGraph(ForgeError):
    """What: The file is ONNX, but the graph in it is not well formed: a name is used and never made, or made twice,
    nodes form a circle, an operator does not exist in the opset, or shapes cannot fit.

    Why: Graph surgery by hand, or a converter's fault, leaves such files. Some runtimes accept some of them; what they
    compute is then a guess.

    Mend: Run `python -c "import onnx, sys; onnx.checker.check_model(sys.argv[1], full_check=True)" FILE` and mend the
    exporter or the script that wrote the file.
    """

    id = "QF413"
    title = "the graph is not well formed"
    exit_code = ExitCode.GRAPH


class PreparationDamaged(ForgeError):
    """What: The folder of a prepared graph lacks prepared.json, or the file cannot be read.

    Why: The folder was changed after preparation, or was written by another version of qnn-forge.

    Mend: Run `qnn-forge store verify`, which removes damaged entries, and build again.
    """

    id = "QF414"
    title = "a prepared graph is damaged"
    exit_code = ExitCode.GRAPH


class NotNumbers(ForgeError):
    """What: Weights of the model are NaN, or weights of a layer (a Conv, a MatMul, a normalisation …) are infinite.
    Each tensor is named, with how many such values it holds, where the first is, and a node that uses it.

    Why: Such a model gives NaN for every input that reaches those weights, and HTP, which has neither NaN nor
    infinity, would give finite numbers that mean nothing. A training run that diverged leaves such checkpoints; so
    does a conversion to float16 of weights beyond 65,504. An infinity that is no weight (an attention mask, the border
    of a Clip, the padding of a maximum) is in order.

    Mend: Export the model again from a sound checkpoint, or in float32 if the float32 weights are numbers.
    """

    id = "QF415"
    title = "weights that are not numbers"
    exit_code = ExitCode.GRAPH


class UnsupportedOps(ForgeError):
    """What: The compiler has no HTP form for some nodes of the graph. Each is listed with its operator, the compiler's
    reason and a suggestion.

    Why: With operators left over, part of the graph would run on the CPU, and there would be several context binaries
    with copies between them. qnn-forge builds whole graphs only.

    Mend: Follow the suggestion of each node: most are a matter of export settings (opset, an exact GELU pattern, sizes
    in place of scales), others need the operator moved to the application's side of the graph.
    """

    id = "QF420"
    title = "operators without an HTP form"
    exit_code = ExitCode.GRAPH
