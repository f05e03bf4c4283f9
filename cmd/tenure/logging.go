package main

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

// logFlags are the flags of the log that the engine writes to standard error.
type logFlags struct {
	level  string
	format string
}

// register adds the flags. What a command tells anyway need not be in its log,
// so each has a least level of its own.
func (f *logFlags) register(flags *pflag.FlagSet, level string) {
	flags.StringVar(&f.level, "log-level", level, "least level to log on standard error: debug, info, warn or error")
	flags.StringVar(&f.format, "log-format", "text", "format of the log: text or json")
}

func (f *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	switch f.level {
	case "debug":
		level = slog.LevelDebug
	case "info":
		level = slog.LevelInfo
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	default:
		return nil, usage("--log-level is %q; it must be debug, info, warn or error", f.level)
	}
	options := &slog.HandlerOptions{Level: level}
	switch f.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	default:
		return nil, usage("--log-format is %q; it must be text or json", f.format)
	}
}
