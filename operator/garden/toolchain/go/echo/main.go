// What the end-to-end tests run in pods. As a server it tells who answered and who asked, and can be sent to
// fetch a URL or to resolve a name from where it runs; as a command it does the same once. With a certificate it
// is also an admission webhook, a conversion webhook and an aggregated API.
//
//	echo                  serve on $PORT (8080), and by TLS on 8443 with $TLS_CERT and $TLS_KEY (PEM)
//	echo get URL          print the body; exit 1 when the answer is not 2xx
//	echo resolve NAME     print the addresses, one a line
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
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

// As an API server asks an admission webhook; what is named "refused" is.
func admit(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    *struct {
			UID  string `json:"uid"`
			Name string `json:"name"`
		} `json:"request,omitempty"`
		Response map[string]any `json:"response,omitempty"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	review.Response = map[string]any{"uid": review.Request.UID, "allowed": review.Request.Name != "refused"}
	if review.Request.Name == "refused" {
		review.Response["status"] = map[string]any{"message": "its name is refused"}
	}
	review.Request = nil
	answer(w, review)
}

// As an API server asks a webhook for another version of custom resources: each says which version it was made from.
func convert(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    *struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		} `json:"request,omitempty"`
		Response map[string]any `json:"response,omitempty"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a ConversionReview", http.StatusBadRequest)
		return
	}
	for _, object := range review.Request.Objects {
		object["spec"] = map[string]any{"convertedFrom": object["apiVersion"]}
		object["apiVersion"] = review.Request.DesiredAPIVersion
	}
	review.Response = map[string]any{
		"uid":              review.Request.UID,
		"result":           map[string]any{"status": "Success"},
		"convertedObjects": review.Request.Objects,
	}
	review.Request = nil
	answer(w, review)
}

// As an API server asks an aggregated API of any group and version: what there is, and one object of it, which says who asked for it.
func aggregated(w http.ResponseWriter, r *http.Request) {
	groupVersion := r.PathValue("group") + "/" + r.PathValue("version")
	name := r.PathValue("name")
	if name == "" {
		resource := map[string]any{"name": "echoes", "singularName": "echo", "kind": "Echo", "namespaced": false, "verbs": []string{"get"}}
		answer(w, map[string]any{
			"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": groupVersion, "resources": []any{resource},
		})
		return
	}
	answer(w, map[string]any{
		"apiVersion": groupVersion, "kind": "Echo", "metadata": map[string]any{"name": name}, "askedBy": r.Header.Get("X-Remote-User"),
	})
}

func answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(object)
}

func serveTLS(certificate, key string, handler http.Handler) error {
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return err
	}
	server := &http.Server{Addr: ":8443", Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	return server.ListenAndServeTLS("", "")
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
	mux.HandleFunc("/admit", admit)
	mux.HandleFunc("/convert", convert)
	mux.HandleFunc("/apis/{group}/{version}", aggregated)
	mux.HandleFunc("/apis/{group}/{version}/echoes/{name}", aggregated)
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
	if certificate := os.Getenv("TLS_CERT"); certificate != "" {
		go func() {
			fmt.Fprintln(os.Stderr, serveTLS(certificate, os.Getenv("TLS_KEY"), logged))
			os.Exit(1)
		}()
	}
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
