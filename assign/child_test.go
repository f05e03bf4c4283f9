package assign_test

// childVariable makes the test's binary a node of its own.
const childVariable = "TENURE_ASSIGN_TEST_NODE"

func runChild(string) int { return 1 }
