"""What a run can do besides asking: tools and verifiers."""
