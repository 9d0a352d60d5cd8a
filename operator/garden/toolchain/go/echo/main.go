// What the end-to-end tests run in pods. As a server it tells who answered and who asked, and can be sent to
// fetch a URL or to resolve a name from where it runs; as a command it does the same once.
//
//	echo                  serve on $PORT (8080)
//	echo get URL          print the body; exit 1 when the answer is not 2xx
//	echo resolve NAME     print the addresses, one a line
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const patience = 5 * time.Second

func get(ctx context.Context, url string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	// A kept connection would hide what a Service or a route does to a new one.
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, string(body), err
}

func resolve(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return "", err
	}
	return strings.Join(addresses, "\n") + "\n", nil
}

func serve() error {
	hostname, err := os.Hostname()
	if err != nil {
		return err
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hostname=%s\nclient=%s\nhost=%s\npath=%s\n", hostname, r.RemoteAddr, r.Host, r.URL.Path)
	})
	mux.HandleFunc("/fetch", func(w http.ResponseWriter, r *http.Request) {
		status, body, err := get(r.Context(), r.URL.Query().Get("url"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
	mux.HandleFunc("/resolve", func(w http.ResponseWriter, r *http.Request) {
		text, err := resolve(r.Context(), r.URL.Query().Get("name"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		io.WriteString(w, text)
	})
	logged := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Printf("%s %s from %s\n", r.Method, r.URL, r.RemoteAddr)
		mux.ServeHTTP(w, r)
	})
	fmt.Printf("listening on :%s as %s\n", port, hostname)
	return http.ListenAndServe(":"+port, logged)
}

func run(args []string) error {
	switch {
	case len(args) == 0 || (len(args) == 1 && args[0] == "serve"):
		return serve()
	case len(args) == 2 && args[0] == "get":
		status, body, err := get(context.Background(), args[1])
		if err != nil {
			return err
		}
		fmt.Print(body)
		if status/100 != 2 {
			return fmt.Errorf("%s answered %d", args[1], status)
		}
		return nil
	case len(args) == 2 && args[0] == "resolve":
		text, err := resolve(context.Background(), args[1])
		fmt.Print(text)
		return err
	}
	return fmt.Errorf("usage: echo [serve | get URL | resolve NAME]")
}

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		os.Exit(0)
	}()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
