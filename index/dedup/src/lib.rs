//! Earlier captures by URL and by digest: a sorted text file that is searched in place.
