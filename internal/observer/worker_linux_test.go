package observer

// workerVariable has the settings of a process that is a worker: see workerMain.
const workerVariable = "TENURE_TEST_OBSERVER_WORKER"

func workerMain(string) int { return 2 }
