// Command seeder writes rows to a Milvus through its Go SDK and reads them back.
// Every row is computed from its primary key, so that what is read back is judged
// by itself, without a record of what was written.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `usage: seeder seed  [flags]   fill the collection with rows 0 to -rows, unless it holds them
       seeder check [flags]   read rows 0 to -rows back and compare each; asks and searches too
       seeder write [flags]   insert rows -from to -to, flush, read them back
       seeder count [flags]   count the rows from -from to -to

Each prints what it found, a key=value a line.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "seeder:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return flag.ErrHelp
	}
	flags := flag.NewFlagSet("seeder "+args[0], flag.ContinueOnError)
	address := flags.String("address", "", "milvus proxy, host:port")
	name := flags.String("collection", "runbook_e2e", "collection")
	timeout := flags.Duration("timeout", 10*time.Minute, "give up after")
	var rows, from, to int64
	switch args[0] {
	case "seed", "check":
		flags.Int64Var(&rows, "rows", 1500, "rows")
	case "write", "count":
		flags.Int64Var(&from, "from", 0, "first primary key")
		flags.Int64Var(&to, "to", 0, "first primary key not taken")
	default:
		fmt.Fprint(os.Stderr, usage)
		return flag.ErrHelp
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 || *address == "" {
		return fmt.Errorf("%s takes flags only, -address among them", args[0])
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	c, err := open(ctx, *address, *name)
	if err != nil {
		return err
	}
	switch args[0] {
	case "seed":
		err = c.seed(ctx, rows)
	case "check":
		err = c.check(ctx, rows)
	case "write":
		err = c.write(ctx, from, to)
	case "count":
		err = c.count(ctx, from, to)
	}
	return errors.Join(err, c.close(ctx))
}
