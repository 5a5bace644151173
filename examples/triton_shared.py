# Triton reads the ring's memory itself. The output has `shared: /framed-gate`, the server runs with --allow-client-shm=true.
# Untested here. usage: triton_shared.py ring:PATH MODEL
import sys, framedio, tritonclient.grpc as triton

client, known = triton.InferenceServerClient("localhost:8001"), None
for frame in framedio.open(sys.argv[1]):
    if known != (known := frame.memory_number):  # the first frame, or another memory
        client.unregister_system_shared_memory("framed")
        client.register_system_shared_memory("framed", frame.shared, frame.memory_bytes)
    images = triton.InferInput("images", [1, *frame.shape], "FP32")
    images.set_shared_memory("framed", frame.bytes, frame.offset)
    output = client.infer(sys.argv[2], [images]).as_numpy("output0")
    print(frame.camera, frame.sequence, framedio.detect(output, frame).tolist(), flush=True)
