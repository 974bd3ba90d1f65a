//! Events, batches, base layers and the JSON writer
