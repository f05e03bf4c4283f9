package console

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/printable"
)

// LogFlags are the flags of the log that the engine writes to standard error.
type LogFlags struct {
	Level  string
	format string

	least slog.LevelVar // of the loggers
}

// Register adds the flags. What a command tells anyway need not be in its log,
// so each has a least level of its own.
func (f *LogFlags) Register(flags *pflag.FlagSet, level string) {
	flags.StringVar(&f.Level, "log-level", level, "least level to log on standard error: debug, info, warn or error")
	flags.StringVar(&f.format, "log-format", "text", "format of the log: text or json")
}

// SetLevel changes the least level of the loggers.
func (f *LogFlags) SetLevel(name string) error {
	switch name {
	case "debug":
		f.least.Set(slog.LevelDebug)
	case "info":
		f.least.Set(slog.LevelInfo)
	case "warn":
		f.least.Set(slog.LevelWarn)
	case "error":
		f.least.Set(slog.LevelError)
	default:
		return Usage("--log-level is %q; it must be debug, info, warn or error", name)
	}
	return nil
}

// Logger writes what can be printed: the JSON format passes C1 controls and
// direction marks on.
func (f *LogFlags) Logger(w io.Writer) (*slog.Logger, error) {
	w = printable.NewWriter(w)
	if err := f.SetLevel(f.Level); err != nil {
		return nil, err
	}
	options := &slog.HandlerOptions{Level: &f.least}
	switch f.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	default:
		return nil, Usage("--log-format is %q; it must be text or json", f.format)
	}
}
