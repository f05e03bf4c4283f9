package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// digest returns the digest of the code that a reference names, without comments and
// spaces. A symbol is one of these:
//
//	waitFor           a function, constant or variable
//	session.waitFor   a method
//	stmtClose         an element of a map, by its key
//	{take}            a function in SQL, by its placeholder
func digest(root string, r reference) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(r.file)))
	if err != nil {
		return "", err
	}
	var tokens []string
	if strings.HasSuffix(r.file, ".sql") {
		tokens, err = sqlTokens(string(text), r.symbol)
	} else {
		tokens, err = goTokens(r.file, text, r.symbol)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", r.file, err)
	}
	sum := sha256.Sum256([]byte(strings.Join(tokens, " ")))
	return hex.EncodeToString(sum[:8]), nil
}

var sqlComment = regexp.MustCompile(`--[^\n]*`)

// sqlTokens returns the words of a function in a migration.
func sqlTokens(text, symbol string) ([]string, error) {
	_, rest, found := strings.Cut(text, "CREATE FUNCTION "+symbol+"(")
	body, _, ends := strings.Cut(rest, "\n$tenure_function$;")
	if !found || !ends {
		return nil, fmt.Errorf("it has no function %s", symbol)
	}
	return sqlWords(body), nil
}

func sqlWords(text string) []string {
	return strings.Fields(sqlComment.ReplaceAllString(text, ""))
}

// goTokens returns the tokens of a declaration, or of an element of a map.
func goTokens(file string, text []byte, symbol string) ([]string, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found ast.Node
	ast.Inspect(parsed, func(n ast.Node) bool {
		if found == nil && n != nil && names(n, symbol) {
			found = n
		}
		return found == nil
	})
	if found == nil {
		return nil, fmt.Errorf("it has no %s", symbol)
	}
	from, to := set.Position(found.Pos()).Offset, set.Position(found.End()).Offset
	if function, ok := found.(*ast.FuncDecl); ok {
		from = set.Position(function.Type.Func).Offset // without its comment
	}
	return scanTokens(text[from:to]), nil
}

// names reports whether a node is what a symbol names.
func names(n ast.Node, symbol string) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		name := n.Name.Name
		if n.Recv != nil {
			receiver := n.Recv.List[0].Type
			if pointer, ok := receiver.(*ast.StarExpr); ok {
				receiver = pointer.X
			}
			if ident, ok := receiver.(*ast.Ident); ok {
				name = ident.Name + "." + name
			}
		}
		return name == symbol
	case *ast.ValueSpec:
		return len(n.Values) == 1 && n.Type == nil && n.Names[0].Name == symbol
	case *ast.KeyValueExpr:
		key, ok := n.Key.(*ast.Ident)
		return ok && key.Name == symbol
	}
	return false
}

// scanTokens returns the tokens of Go without comments; literals that have SQL without
// their comments and spaces.
func scanTokens(text []byte) (tokens []string) {
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile("", set.Base(), len(text)), text, nil, 0)
	for {
		_, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			return tokens
		case tok == token.SEMICOLON:
		case tok == token.STRING && bytes.ContainsRune([]byte(literal), '\n'):
			tokens = append(tokens, sqlWords(literal)...)
		case literal != "":
			tokens = append(tokens, literal)
		default:
			tokens = append(tokens, tok.String())
		}
	}
}

// changed lists the references of models whose code is not what was modeled.
func changed(root string, models []model) (list []string, err error) {
	for _, m := range models {
		for _, r := range m.code {
			now, err := digest(root, r)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			if now != r.digest {
				list = append(list, fmt.Sprintf("%s of %s has changed since %s was written", r.symbol, r.file, m.name))
			}
		}
	}
	return list, nil
}

// rewriteDigests writes the digests of the present code into the models in a folder.
func rewriteDigests(root, folder string, models []model) error {
	for _, m := range models {
		text := m.text
		for _, r := range m.code {
			now, err := digest(root, r)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			line := "code: " + r.file + " " + r.symbol + " sha256:"
			text = bytes.Replace(text, []byte(line+r.digest+"\n"), []byte(line+now+"\n"), 1)
		}
		if bytes.Equal(text, m.text) {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, m.name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
