"""gRPC in, domain out."""
