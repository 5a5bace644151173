# TensorRT on a ring with `memory: cuda`, without a copy. usage: tensorrt_engine.py ring:PATH ENGINE
# Untested here.
import sys, framedio, tensorrt, torch

runtime = tensorrt.Runtime(tensorrt.Logger())
context = runtime.deserialize_cuda_engine(open(sys.argv[2], "rb").read()).create_execution_context()
output = torch.empty(tuple(context.engine.get_tensor_shape("output0")), device="cuda")
context.set_tensor_address("output0", output.data_ptr())
for frame in framedio.open(sys.argv[1]):
    context.set_tensor_address("images", frame.pointer)
    context.execute_async_v3(torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    print(frame.camera, frame.sequence, framedio.detect(output, frame).tolist(), flush=True)
