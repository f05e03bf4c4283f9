package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// git runs Git in a repository and returns what it printed.
func git(ctx context.Context, root string, words ...string) (string, error) {
	return output(ctx, root, os.Environ(), append([]string{"git"}, words...)...)
}

// committedTree lists the files of the last commit, from which the go command
// makes a tagged module. Nothing else may be in the folder.
func committedTree(ctx context.Context, root string) (*tree, error) {
	status, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if status != "" {
		return nil, fmt.Errorf("the working tree is not clean: commit or remove\n%s", strings.TrimRight(status, "\n"))
	}
	names, err := git(ctx, root, "ls-tree", "-r", "-z", "--name-only", "HEAD")
	if err != nil {
		return nil, err
	}
	return &tree{root: root, names: strings.Split(strings.TrimRight(names, "\x00"), "\x00"), changed: map[string][]byte{}}, nil
}
