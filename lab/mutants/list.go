package main

import "slices"

// mutants are all entries of the list.
var mutants = slices.Concat(engineMutants, stepMutants, seenMutants, endMutants, postgresMutants, recordMutants, leaseMutants, processorMutants, replayMutants, schemaMutants, guardianMutants, agentMutants, limitMutants, edgeMutants, apiMutants, timeMutants, commandMutants, doorMutants, pageMutants, claimMutants, damageMutants, agentPromiseMutants, agentSessionMutants, scheduleMutants, clockMutants, hostileMutants, doorbellMutants, simulatedMutants, brokerMutants, constantMutants)
