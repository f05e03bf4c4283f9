package pack

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"
)

const archived = `644 NAME/LICENSE
644 NAME/README.md
644 NAME/THIRD_PARTY_LICENSES
755 NAME/PROGRAM
755 NAME/SERVER
644 NAME/completions/tenure.bash
644 NAME/completions/tenure.fish
644 NAME/completions/tenure.ps1
644 NAME/completions/_tenure
644 NAME/man/man1/tenure-run.1
644 NAME/man/man1/tenure.1
`

func TestArchivesHaveTheirFiles(t *testing.T) {
	for _, target := range Targets {
		t.Run(target.OS+"/"+target.Arch, func(t *testing.T) {
			archive, err := newContents().Archive(target, programsFor(target), licenses)
			if err != nil {
				t.Fatal(err)
			}
			name := "tenure_0.1.0_" + target.OS + "_" + target.Arch
			file, want, extension := "tenure", archived, ".tar.gz"
			var files []File
			switch target.OS {
			case "windows":
				file, extension = "tenure.exe", ".zip"
				files = readZip(t, archive.Content)
			case "linux":
				want += "644 NAME/systemd/tenure@.service\n"
				files = readTarGz(t, archive.Content)
			default:
				files = readTarGz(t, archive.Content)
			}
			if archive.Name != name+extension {
				t.Errorf("the archive is %s; want %s", archive.Name, name+extension)
			}
			want = strings.NewReplacer("NAME", name, "PROGRAM", file, "SERVER", target.File("tenure-server")).Replace(want)
			if got := list(files); got != want {
				t.Errorf("the archive has:\n%swant:\n%s", got, want)
			}
			for inArchive, want := range map[string]string{
				file: "a program", "LICENSE": "free\n", "completions/_tenure": "complete zsh\n", "man/man1/tenure.1": ".TH TENURE\n",
				"THIRD_PARTY_LICENSES": "licenses of others\n",
			} {
				if got := content(t, files, name+"/"+inArchive); got != want {
					t.Errorf("%s is %q; want %q", inArchive, got, want)
				}
			}
		})
	}
}

func readZip(t *testing.T, content []byte) []File {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	var files []File
	for _, f := range archive.File {
		if !f.Modified.Equal(made) {
			t.Errorf("%s is of %v; want %v", f.Name, f.Modified, made)
		}
		reader, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		file, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, File{f.Name, f.Mode().Perm(), file})
	}
	return files
}

func TestArchivesAreReproducible(t *testing.T) {
	for _, target := range Targets {
		var first []byte
		for range 2 {
			archive, err := newContents().Archive(target, programsFor(target), licenses)
			if err != nil {
				t.Fatal(err)
			}
			if first != nil && !bytes.Equal(archive.Content, first) {
				t.Errorf("%s differs between two runs", archive.Name)
			}
			first = archive.Content
		}
	}
}
