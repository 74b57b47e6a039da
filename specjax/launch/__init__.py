"""Running experiments: flags, configuration, records. absl flags are defined from here on."""
