//! The nouns of harvesting: what a job and its order say.
