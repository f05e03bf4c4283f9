package sentinel_test

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
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/sentinel"
	"github.com/exactly-one/tenure/postgres"
)

// ancestry lists, for each sentinel, everything it must match in addition to itself.
var ancestry = map[error][]error{
	tenure.ErrTenure:           nil,
	tenure.ErrConnection:       {tenure.ErrTenure},
	dberr.ErrDatabase:          {tenure.ErrTenure},
	dberr.ErrBusy:              {dberr.ErrDatabase, tenure.ErrTenure},
	dberr.ErrReadOnly:          {dberr.ErrDatabase, tenure.ErrTenure},
	dberr.ErrDiskFull:          {dberr.ErrDatabase, tenure.ErrTenure},
	dberr.ErrInstallationInUse: {dberr.ErrDatabase, tenure.ErrTenure},
	tenure.ErrLock:             {tenure.ErrTenure},
	tenure.ErrShutdown:         {tenure.ErrTenure},
	tenure.ErrRefused:          {tenure.ErrTenure},
	tenure.ErrTermEnded:        {tenure.ErrTenure},
	dberr.ErrPooled:            {tenure.ErrRefused, tenure.ErrTenure},
	dberr.ErrServerTooOld:      {tenure.ErrRefused, tenure.ErrTenure},
	dberr.ErrInRecovery:        {tenure.ErrRefused, tenure.ErrTenure},
	postgres.ErrLocksIgnored:   {tenure.ErrRefused, tenure.ErrTenure},
	dberr.ErrSchema:            {tenure.ErrRefused, tenure.ErrTenure},
	dberr.ErrDamaged:           {dberr.ErrSchema, tenure.ErrRefused, tenure.ErrTenure},
	dberr.ErrPrivilege:         {tenure.ErrRefused, tenure.ErrTenure},
	dberr.ErrWrongMode:         {tenure.ErrRefused, tenure.ErrTenure},
	tenure.ErrTrustExpired:     {tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrSessionLost:      {tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrSuperseded:       {tenure.ErrSessionLost, tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrResigned:         {tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrSteppedDown:      {tenure.ErrResigned, tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrHandedOver:       {tenure.ErrResigned, tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrStopping:         {tenure.ErrResigned, tenure.ErrTermEnded, tenure.ErrTenure},
	tenure.ErrNotLeader:        {tenure.ErrTenure},
	tenure.ErrNoLeader:         {tenure.ErrTenure},
	dberr.ErrHasLeader:         {tenure.ErrTenure},
	dberr.ErrUnknownRole:       {tenure.ErrTenure},
	tenure.ErrHeld:             {tenure.ErrLock, tenure.ErrTenure},
	tenure.ErrLockTimeout:      {tenure.ErrLock, tenure.ErrTenure},
	postgres.ErrLockTableFull:  {tenure.ErrLock, tenure.ErrTenure},
	tenure.ErrKeyMismatch:      {tenure.ErrLock, tenure.ErrTenure},
	tenure.ErrFenced:           {tenure.ErrTenure},
	tenure.ErrWorkRunning:      {tenure.ErrShutdown, tenure.ErrTenure},
	tenure.ErrDrainCanceled:    {tenure.ErrShutdown, tenure.ErrTenure},
	tenure.ErrInvalidRole:      {tenure.ErrTenure},
	tenure.ErrInvalidConfig:    {tenure.ErrTenure},
	tenure.ErrDuplicateRole:    {tenure.ErrTenure},
	tenure.ErrAlreadyStarted:   {tenure.ErrTenure},
	tenure.ErrStopped:          {tenure.ErrTenure},
	tenure.ErrClosed:           {tenure.ErrStopped, tenure.ErrTenure},
	tenure.ErrUnknownNode:      {tenure.ErrTenure},
	tenure.ErrNotActive:        {tenure.ErrLock, tenure.ErrTenure},
	tenure.ErrUnsupported:      {tenure.ErrTenure},
	tenure.ErrNameTaken:        {tenure.ErrRefused, tenure.ErrTenure},
	tenure.ErrLastNode:         {tenure.ErrTenure},
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
	declared := 0
	for _, name := range []string{"../../errors.go", "../../dberr/dberr.go", "../../postgres/errors.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
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
	}
	if declared != len(ancestry) {
		t.Errorf("the packages declare %d sentinels, the test knows %d", declared, len(ancestry))
	}
}

func TestIsFindsOnlySentinels(t *testing.T) {
	t.Parallel()
	if !sentinel.Is(tenure.ErrHeld) || sentinel.Is(fmt.Errorf("wrapped: %w", tenure.ErrHeld)) || sentinel.Is(tenure.Done) {
		t.Error("Is does not distinguish sentinels from other errors")
	}
	if errors.Is(tenure.Done, tenure.ErrTenure) {
		t.Error("Done matches ErrTenure")
	}
}
