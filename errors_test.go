package tenure_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
)

// ancestry lists, for each sentinel, everything it must match besides itself.
var ancestry = map[error][]error{
	tenure.ErrTenure:            nil,
	tenure.ErrConnection:        {tenure.ErrTenure},
	tenure.ErrDatabase:          {tenure.ErrTenure},
	tenure.ErrBusy:              {tenure.ErrDatabase, tenure.ErrTenure},
	tenure.ErrReadOnly:          {tenure.ErrDatabase, tenure.ErrTenure},
	tenure.ErrDiskFull:          {tenure.ErrDatabase, tenure.ErrTenure},
	tenure.ErrInstallationInUse: {tenure.ErrDatabase, tenure.ErrTenure},
	tenure.ErrLock:              {tenure.ErrTenure},
	tenure.ErrShutdown:          {tenure.ErrTenure},
	tenure.ErrRefused:           {tenure.ErrTenure},
	tenure.ErrTermEnded:         {tenure.ErrTenure},
	tenure.ErrPooled:            {tenure.ErrRefused, tenure.ErrTenure},
	tenure.ErrServerTooOld:      {tenure.ErrRefused, tenure.ErrTenure},
	tenure.ErrInRecovery:        {tenure.ErrRefused, tenure.ErrTenure},
	tenure.ErrLocksIgnored:      {tenure.ErrRefused, tenure.ErrTenure},
	tenure.ErrSchema:            {tenure.ErrRefused, tenure.ErrTenure},
	tenure.ErrPrivilege:         {tenure.ErrRefused, tenure.ErrTenure},
	tenure.ErrWrongMode:         {tenure.ErrRefused, tenure.ErrTenure},
	tenure.ErrTrustExpired:      {tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrSessionLost:       {tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrSuperseded:        {tenure.ErrSessionLost, tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrResigned:          {tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrSteppedDown:       {tenure.ErrResigned, tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrHandedOver:        {tenure.ErrResigned, tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrStopping:          {tenure.ErrResigned, tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrNotLeader:         {tenure.ErrTenure},
	tenure.ErrNoLeader:          {tenure.ErrTenure},
	tenure.ErrHasLeader:         {tenure.ErrTenure},
	tenure.ErrUnknownRole:       {tenure.ErrTenure},
	tenure.ErrHeld:              {tenure.ErrLock, tenure.ErrTenure},
	tenure.ErrLockTimeout:       {tenure.ErrLock, tenure.ErrTenure},
	tenure.ErrLockTableFull:     {tenure.ErrLock, tenure.ErrTenure},
	tenure.ErrKeyMismatch:       {tenure.ErrLock, tenure.ErrTenure},
	tenure.ErrFenced:            {tenure.ErrTenure},
	tenure.ErrWorkRunning:       {tenure.ErrShutdown, tenure.ErrTenure},
	tenure.ErrDrainCanceled:     {tenure.ErrShutdown, tenure.ErrTenure},
	tenure.ErrInvalidRole:       {tenure.ErrTenure},
	tenure.ErrInvalidConfig:     {tenure.ErrTenure},
	tenure.ErrDuplicateRole:     {tenure.ErrTenure},
	tenure.ErrAlreadyStarted:    {tenure.ErrTenure},
	tenure.ErrStopped:           {tenure.ErrTenure},
	tenure.ErrClosed:            {tenure.ErrStopped, tenure.ErrTenure},
	tenure.ErrUnknownNode:       {tenure.ErrTenure},
	tenure.ErrNotActive:         {tenure.ErrLock, tenure.ErrTenure},
	tenure.ErrUnsupported:       {tenure.ErrTenure},
	tenure.ErrNameTaken:         {tenure.ErrRefused, tenure.ErrTenure},
	tenure.ErrLastNode:          {tenure.ErrTenure},
}

func TestErrorsMatchOnlyTheirCategories(t *testing.T) {
	t.Parallel()
	for err, ancestors := range ancestry {
		wrapped := fmt.Errorf("heartbeat: %w", err)
		for other := range ancestry {
			want := slices.Contains(append(ancestors, err), other)
			if got := errors.Is(wrapped, other); got != want {
				t.Errorf("%q is %q: %v", err, other, got)
			}
		}
	}
}

func TestErrorTextsAreUnique(t *testing.T) {
	t.Parallel()
	texts := map[string]bool{}
	for err := range ancestry {
		if err.Error() == "" || texts[err.Error()] {
			t.Errorf("%q is empty or used twice", err)
		}
		texts[err.Error()] = true
	}
}

// The table above must include every error that is added later.
func TestEverySentinelIsTested(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok {
			for _, name := range spec.Names {
				if strings.HasPrefix(name.Name, "Err") {
					declared++
				}
			}
		}
		return true
	})
	if declared != len(ancestry) {
		t.Errorf("errors.go declares %d sentinels, the test knows %d", declared, len(ancestry))
	}
}

func TestDoneMatchesNoCategory(t *testing.T) {
	t.Parallel()
	if errors.Is(tenure.Done, tenure.ErrTenure) {
		t.Error("Done matches ErrTenure")
	}
}
