package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxExported is how many constants, variables, types and functions the root package
// may export: what it declares must fit on a page.
const maxExported = 100

func TestRootExportsFewIdentifiers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var exported []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		exported = append(exported, exportedNames(file)...)
	}
	if len(exported) < 50 || len(exported) > maxExported {
		t.Errorf("the root package exports %d identifiers, want at most %d: %s", len(exported), maxExported, strings.Join(exported, " "))
	}
}

// exportedNames lists the exported identifiers that a file declares, without methods
// and fields.
func exportedNames(file *ast.File) (names []string) {
	add := func(ident *ast.Ident) {
		if ident.IsExported() {
			names = append(names, ident.Name)
		}
	}
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			if declaration.Recv == nil {
				add(declaration.Name)
			}
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						add(name)
					}
				}
			}
		}
	}
	return names
}
