package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// Reads a container file as BuildKit does. Its context is the folder above that of the file: what is copied from there must be there,
// what is copied from a stage must be one before, and what it begins with has a version.
func checkContainerFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	parsed, err := parser.Parse(file)
	if err != nil {
		return err
	}
	if len(parsed.Warnings) > 0 {
		return fmt.Errorf("line %v: %s", parsed.Warnings[0].Location, parsed.Warnings[0].Short)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return err
	}
	context := filepath.Dir(filepath.Dir(path))
	known := map[string]bool{}
	for _, stage := range stages {
		if !known[stage.BaseName] && (!strings.Contains(stage.BaseName, ":") || strings.HasSuffix(stage.BaseName, ":latest")) {
			return fmt.Errorf("`FROM %s` has no version", stage.BaseName)
		}
		for _, command := range stage.Commands {
			copied, is := command.(*instructions.CopyCommand)
			if !is {
				continue
			}
			if copied.From != "" && !known[copied.From] {
				return fmt.Errorf("`%s` is from no stage", copied)
			}
			for _, source := range copied.SourcePaths {
				if copied.From != "" {
					continue
				}
				if _, err := os.Stat(filepath.Join(context, source)); err != nil {
					return fmt.Errorf("`%s`: %w", copied, err)
				}
			}
		}
		known[stage.Name] = true
	}
	return nil
}
