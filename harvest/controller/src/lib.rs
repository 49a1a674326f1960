//! The life of one harvest job, from its order to its receipts.
