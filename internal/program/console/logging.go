package console

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/printable"
)

// LogFlags are the flags for the log on standard error.
type LogFlags struct {
	Level  string
	format string

	least slog.LevelVar // minimum level of the loggers
}

// Register adds the flags. Each command has its own default level, since its log need not
// repeat its output.
func (f *LogFlags) Register(flags *pflag.FlagSet, level string) {
	flags.StringVar(&f.Level, "log-level", level, "minimum level to log on standard error: debug, info, warn or error")
	flags.StringVar(&f.format, "log-format", "text", "format of the log: text or json")
}

// SetDefault changes the default level of registered flags.
func (f *LogFlags) SetDefault(flags *pflag.FlagSet, level string) {
	f.Level = level
	flags.Lookup("log-level").DefValue = level
}

// SetLevel changes the minimum level of the loggers.
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

// Logger returns a logger with escapes for unprintable characters, since the JSON format
// would write C1 controls and direction marks unchanged.
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
