// CNCF distribution with the storage and the authentication that tests need: the drivers of clouds would be most of what is compiled.
// The official release, which the toolchain prefers, has all of them.
package main

import (
	"os"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/auth/token"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/middleware/redirect"
)

func main() {
	if registry.RootCmd.Execute() != nil {
		os.Exit(1)
	}
}
