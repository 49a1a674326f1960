//! What the door refuses before anything is touched, and what it says of a node.
