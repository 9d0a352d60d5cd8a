// The three programs of Argo CD that deploy, chosen as its own release does: by ARGOCD_BINARY_NAME. Leaving out its API server and its
// command line leaves out a good part of what would be compiled. The official release, which the toolchain prefers, has all of them.
package main

import (
	"fmt"
	"os"

	applicationcontroller "github.com/argoproj/argo-cd/v2/cmd/argocd-application-controller/commands"
	applicationsetcontroller "github.com/argoproj/argo-cd/v2/cmd/argocd-applicationset-controller/commands"
	reposerver "github.com/argoproj/argo-cd/v2/cmd/argocd-repo-server/commands"
	"github.com/spf13/cobra"
)

var programs = map[string]func() *cobra.Command{
	"argocd-application-controller":    applicationcontroller.NewCommand,
	"argocd-applicationset-controller": applicationsetcontroller.NewCommand,
	"argocd-repo-server":               reposerver.NewCommand,
}

func main() {
	name := os.Getenv("ARGOCD_BINARY_NAME")
	program, ok := programs[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "ARGOCD_BINARY_NAME is %q, and this has only Argo CD's two controllers and its repo server\n", name)
		os.Exit(1)
	}
	if program().Execute() != nil {
		os.Exit(1)
	}
}
