"""Faults found by comparing HTP's numbers with the float model's."""

from qnn.errors.base import ExitCode, ForgeError


class VerifyFailed(ForgeError):
    """What: An output that the packaged binary computes on the HTP emulator is not what the float model computes.
    The message names the worst output, every gate it missed, and where its largest error is.

    Why: The compiler accepts graphs it computes wrongly, and a compile that says nothing proves nothing. So every
    binary is run on real inputs and compared with the original model on ONNX Runtime's CPU provider. A cosine alone
    hides a wrong border, a wrong channel and a wrong factor; so the size of the largest error, the gain and the
    arg max are judged too, and integers and booleans must be equal.

    Mend: Read docs/verification.md: it lists the kinds of silent faults and how each is mended in the graph. If the
    task metric shows that the error does no harm, write a gate of your own for this output in model.yaml
    (`checks.outputs`), as tight as the model allows. With a quantized precision, calibrate with better data or raise
    the precision. If the float result is nearly zero everywhere, choose an input on which the model has something to
    say.
    """

    id = "QF620"
    title = "an output differs from the float model"
    exit_code = ExitCode.GATE


class MetricFailed(ForgeError):
    """What: The model's task metric on HTP's outputs misses its gate. The message gives both values and the gate.

    Why: The metric is what a user of the model sees: the text that was read, the box that was found. Numbers that
    look near enough can still give another text.

    Mend: Look at the comparison of the outputs first: it says which output is off. If the numbers are as good as the
    precision allows, the gate under `checks.metrics` asks for more than fp16 (or the quantization) can give.
    """

    id = "QF621"
    title = "the task metric misses its gate"
    exit_code = ExitCode.GATE


class SaturatedOutput(ForgeError):
    """What: HTP answers with one of the numbers that stand for overflow or "not a number" (±65504, ±65536, ±131008,
    or the floor of a logarithm, -7.625 before scaling) where the float model says something else.

    Why: HTP computes in a 16-bit float without infinity and NaN. A sum or product beyond 65504 comes out as a finite
    number, and so does the square root of a negative number; a check for NaN never fires.

    Mend: Keep the values in range. If the float model's own output is beyond 65504, scale it in the graph and undo
    the scaling outside. Otherwise something inside the graph overflows: a sum of squares (use ReduceMean instead of
    ReduceSum and a division), an RMS norm of large activations (scale by a power of two before squaring), exp of a
    very negative or large number (Clip to -80…11 before it, or use Softmax and Softplus), log of what fp16 rounds to
    zero (raise the floor to 6.2e-5), an attention mask of -3.4e38 (use -10000).
    """

    id = "QF622"
    title = "an output is saturated"
    exit_code = ExitCode.GATE


class OutputChanged(ForgeError):
    """What: An output of the packaged binary has another dtype or shape than the float model's, or holds infinities
    or NaN where the float model does not.

    Why: Such an output cannot be compared, and an app that reads it by the model's description would read garbage.
    A float16 output above 65504 reads as NaN, because HTP uses those bit patterns as numbers.

    Mend: Check the shapes in model.yaml against the model's real ones. Give a float16 output that leaves fp16's
    range a float32 dtype, or scale it.
    """

    id = "QF623"
    title = "an output has another dtype or shape, or is not finite"
    exit_code = ExitCode.GATE


class GoldenUnusable(ForgeError):
    """What: The golden inputs or outputs of a bundle are missing, cut short, or hold what their dtype cannot.

    Why: They are the bundle's own proof: without them it can be neither checked again nor tried on a device.

    Mend: Fetch or build the bundle again. If you changed the files yourself, write them with the dtype, shape and
    byte order (little-endian) that the manifest states.
    """

    id = "QF625"
    title = "golden files are missing or damaged"
    exit_code = ExitCode.GATE


class ReferenceNotFinite(ForgeError):
    """What: The float model itself answers infinity or NaN for a sample, so there is no truth to compare with.
    The message names the output, the sample and the first such element.

    Why: HTP has no infinity and no NaN and would answer with some finite number. Whether that is right cannot be
    judged.

    Mend: Change what data.py gives: inputs in the range the model was trained for, masks that leave at least one
    position. If the model produces infinities by design (a mask of -inf as an output), leave that output out of the
    graph or clip it.
    """

    id = "QF630"
    title = "the float reference is not finite"
    exit_code = ExitCode.GATE


class ReferenceFailed(ForgeError):
    """What: The original model does not load or run on ONNX Runtime's CPU provider.

    Why: Its float results are the truth that every binary is compared with.

    Mend: Read ONNX Runtime's reason in the message. An operator it does not know needs another opset or export; a
    shape error usually means that the sample does not fit the model; for an output that is a sequence or a map,
    export the tensors instead.
    """

    id = "QF631"
    title = "the float reference cannot be computed"
    exit_code = ExitCode.GATE


class SampleDoesNotFit(ForgeError):
    """What: A sample does not fit the original model: names missing or left over, another dtype or shape, or integers
    that the model's own dtype cannot hold.

    Why: The reference is computed by the file as its authors published it, on exactly the inputs that the packaged
    binary gets. Integers are widened or narrowed when no value changes; nothing else is converted.

    Mend: Make data.py (or the .npz files) give every input of the graph under its ONNX name. Where the model for the
    NPU has other inputs than the original, name the right file under `graphs.NAME.reference`.
    """

    id = "QF632"
    title = "a sample does not fit the original model"
    exit_code = ExitCode.GATE
