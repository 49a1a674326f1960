//! The links of captured documents: bytes in, URIs out.
