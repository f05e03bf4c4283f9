package pack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"
)

// File is a file in an archive or of a release.
type File struct {
	Name    string // with slashes; of a folder, it ends in one
	Mode    fs.FileMode
	Content []byte
}

func (f File) isFolder() bool { return strings.HasSuffix(f.Name, "/") }

// TarGz makes a compressed archive of files that belong to root and have one time.
func TarGz(files []File, modified time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.Name, Mode: int64(f.Mode.Perm()), Size: int64(len(f.Content)),
			ModTime: modified, Uname: "root", Gname: "root",
		}
		if f.isFolder() {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.Content); err != nil {
			return nil, err
		}
	}
	err = errors.Join(archive.Close(), compressed.Close())
	return out.Bytes(), err
}

// zipped makes a ZIP archive of files that have one time.
func zipped(files []File, modified time.Time) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: modified.UTC()}
		header.SetMode(f.Mode)
		file, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(f.Content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}

// gzipped compresses the content of one file. Its header has no name and no time.
func gzipped(content []byte) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = compressed.Write(content)
	err = errors.Join(err, compressed.Close())
	return out.Bytes(), err
}

// withFolders puts the folders of files before the files that are in them.
func withFolders(files []File) []File {
	var all []File
	made := map[string]bool{}
	var add func(folder string)
	add = func(folder string) {
		if folder == "." || made[folder] {
			return
		}
		made[folder] = true
		add(path.Dir(folder))
		all = append(all, File{Name: folder + "/", Mode: 0o755})
	}
	for _, f := range files {
		if f.isFolder() {
			add(path.Clean(f.Name))
			continue
		}
		add(path.Dir(f.Name))
		all = append(all, f)
	}
	return all
}
