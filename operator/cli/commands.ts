import type { CommandSpec, CommandTable, OptionSpec } from './command.ts';

const MINUTE = 'DURATION';

/** Options that every command takes. */
export const GLOBAL_OPTIONS: readonly OptionSpec[] = [
  {
    name: 'namespace',
    short: 'n',
    value: 'NAMESPACE',
    summary: 'the namespace (default: the context\'s, else "default")',
  },
  { name: 'kubeconfig', value: 'FILE', summary: 'the API server to use (see below for the default)' },
  { name: 'context', value: 'NAME', summary: 'the context of that kubeconfig' },
  { name: 'timeout', value: MINUTE, type: 'duration', summary: 'give up after this long, e.g. 90s or 5m' },
  { name: 'verbose', short: 'v', summary: 'print more' },
];

const DETACH: OptionSpec = {
  name: 'detach',
  short: 'd',
  summary: 'return, and keep everything running in the background',
};
const SEED_KUBECONFIG: OptionSpec = {
  name: 'seed-kubeconfig',
  value: 'FILE',
  summary: "use this Kubernetes (kind, k3d, a cloud's) as the seed instead of a local one",
};
/** Options of the garden's image mirror. The garden keeps their values until somebody sets them again. */
const REGISTRIES: readonly OptionSpec[] = [
  {
    name: 'registry',
    value: 'HOST:PORT',
    repeatable: true,
    summary: 'let pods pull from this registry on this machine, or without TLS; "none" removes all such registries',
  },
  {
    name: 'registry-login',
    value: 'HOST',
    repeatable: true,
    summary: 'pull from this registry with this machine\'s docker login; "none" removes all such logins',
  },
  { name: 'image-cache', value: 'SIZE', summary: 'the largest size of the cache of pulled images (default: 10Gi)' },
];
/** Options about the way out of pods. The garden keeps their values until somebody sets them again. */
const EGRESS: readonly OptionSpec[] = [
  { name: 'no-egress', summary: 'pods reach nothing outside the garden, until --egress says otherwise' },
  {
    name: 'egress',
    value: 'all|public|none',
    choices: ['all', 'public', 'none'],
    summary:
      'what pods reach outside the garden: all that this machine reaches (default), only public addresses, or nothing',
  },
];
const OUTPUT = (...choices: string[]): OptionSpec => ({
  name: 'output',
  short: 'o',
  value: choices.join('|'),
  choices,
  summary: 'the output format',
});
const FILES: OptionSpec = {
  name: 'filename',
  short: 'f',
  value: 'FILE',
  repeatable: true,
  isForExtraWord: true,
  summary: 'a file, a folder, or - for standard input; may be given more than once',
};

/** Commands `hibernate` and `wake`, which set the same field. */
const sleepCommand = (name: string, summary: string, asleep: boolean): CommandSpec => ({
  name,
  summary,
  positionals: [{ name: 'NAME', required: true, complete: 'name' }],
  options: [{ name: 'wait', summary: asleep ? 'return when it sleeps' : 'return when it is Ready' }],
  examples: [`coppice ${name} demo --wait`],
  endsItself: true,
  load: async () => ({
    run: (context) => import('./commands/hibernate.ts').then((module) => module.run(context, asleep)),
  }),
});

/** All commands in the order of help. The module of a command is loaded when the command runs. */
export const COMMANDS: readonly CommandSpec[] = [
  {
    name: 'start',
    summary: 'start a garden and create a first cluster, and show its progress until it is Ready',
    description:
      'Installs the tools, starts the garden and its seed, creates the cluster in examples/local.yaml unless it exists, and shows its ' +
      "progress until it is Ready. It then runs until Ctrl-C, which stops the garden's processes and keeps its state. The exit code is " +
      'then 0, or 130 if the cluster was not Ready yet.',
    positionals: [],
    options: [
      DETACH,
      SEED_KUBECONFIG,
      ...REGISTRIES,
      ...EGRESS,
      { ...FILES, summary: 'apply this instead of examples/local.yaml' },
    ],
    examples: ['coppice start', 'coppice start --detach'],
    endsItself: true,
    load: () => import('./commands/start.ts'),
  },
  {
    name: 'up',
    summary: 'start the garden, with the clusters that it had before',
    description:
      "Starts the garden and its seed, and runs until Ctrl-C, which stops the garden's processes and keeps its state. With --detach it " +
      'returns as soon as the garden is up.',
    positionals: [],
    options: [DETACH, SEED_KUBECONFIG, ...REGISTRIES, ...EGRESS],
    examples: [
      'coppice up --detach',
      'coppice up --seed-kubeconfig ~/.kube/kind-seed',
      'coppice up --registry localhost:5001 --registry-login ghcr.io',
    ],
    endsItself: true,
    load: () => import('./commands/up.ts'),
  },
  {
    name: 'down',
    summary: 'delete the garden, with all its clusters, its state, and their contexts in your kubeconfig',
    positionals: [],
    options: [
      {
        name: 'leave-clouds',
        summary: 'delete it even if its clusters in a cloud remain there, where nothing manages them any more',
      },
    ],
    endsItself: true,
    load: () => import('./commands/down.ts'),
  },
  {
    name: 'stop',
    summary: 'stop the garden\'s processes and keep its state; "coppice up" starts it again',
    positionals: [],
    options: [],
    endsItself: true,
    load: () => import('./commands/stop.ts'),
  },
  {
    name: 'status',
    summary: 'show the state of the garden, its seeds and its clusters',
    description: 'The exit code is 0 when the garden runs and all its parts are healthy, else 1.',
    positionals: [],
    options: [OUTPUT('json', 'yaml')],
    load: () => import('./commands/status.ts'),
  },
  {
    name: 'get',
    summary: 'list clusters and other objects',
    description:
      'KIND is workerclusters (the default), shoots, seeds, cloudprofiles, credentialsbindings, quotas or all. With -o json or yaml it ' +
      'prints a Kubernetes List, or the object itself when you give a NAME.',
    positionals: [
      { name: 'KIND', complete: 'kind' },
      { name: 'NAME', complete: 'name' },
    ],
    options: [
      { name: 'all-namespaces', short: 'A', summary: 'in every namespace' },
      { name: 'selector', short: 'l', value: 'SELECTOR', summary: 'only objects with these labels' },
      OUTPUT('json', 'yaml', 'wide', 'name'),
      { name: 'no-headers', summary: 'leave out the header of a table' },
      { name: 'watch', short: 'w', summary: 'go on, with a row for each change' },
    ],
    examples: ['coppice get', 'coppice get workerclusters -A -o json', 'coppice get seed local -o yaml'],
    load: () => import('./commands/get.ts'),
  },
  {
    name: 'describe',
    summary: 'show one cluster as a tree: its parts, the state of each, and why',
    positionals: [
      { name: 'KIND', complete: 'kind' },
      { name: 'NAME', complete: 'name' },
    ],
    options: [
      { name: 'show-conditions', summary: 'every condition, not only those that need attention' },
      { name: 'no-grouping', summary: 'every machine on its own line' },
      { name: 'all-namespaces', short: 'A', hidden: true, summary: 'not here' },
    ],
    examples: ['coppice describe demo', 'coppice describe shoot demo --show-conditions'],
    load: () => import('./commands/describe.ts'),
  },
  {
    name: 'apply',
    summary: 'create or change the objects in a manifest',
    positionals: [],
    options: [FILES, { name: 'dry-run', summary: 'let the API server check it, and change nothing' }],
    examples: ['coppice apply -f examples/demo-worker-cluster.yaml', 'coppice apply -f - < cluster.yaml'],
    load: () => import('./commands/apply.ts'),
  },
  {
    name: 'delete',
    summary: 'delete a cluster with everything that belongs to it',
    positionals: [{ name: 'NAME', required: true, repeatable: true, complete: 'name' }],
    options: [
      { name: 'wait', summary: 'return when it is gone' },
      { name: 'ignore-not-found', summary: 'do not fail when a cluster does not exist' },
    ],
    examples: ['coppice delete demo --wait --timeout 5m'],
    endsItself: true,
    load: () => import('./commands/delete.ts'),
  },
  {
    name: 'scale',
    summary: "change the number of a cluster's nodes",
    positionals: [{ name: 'NAME', required: true, complete: 'name' }],
    options: [
      {
        name: 'nodes',
        value: 'N',
        type: 'integer',
        isForExtraWord: true,
        summary: 'the wanted number of data plane nodes',
      },
    ],
    examples: ['coppice scale demo --nodes 5'],
    load: () => import('./commands/scale.ts'),
  },
  sleepCommand('hibernate', 'put a cluster to sleep: no nodes and no pods of its control plane; its data stays', true),
  sleepCommand('wake', 'wake a cluster that sleeps', false),
  {
    name: 'upgrade',
    summary: "change a cluster's version of Kubernetes",
    positionals: [{ name: 'NAME', required: true, complete: 'name' }],
    options: [
      {
        name: 'to',
        value: 'VERSION',
        isForExtraWord: true,
        summary: 'the wanted version, or a minor for its newest patch',
      },
    ],
    examples: ['coppice upgrade demo --to 1.36'],
    load: () => import('./commands/upgrade.ts'),
  },
  {
    name: 'logs',
    summary: "print the end of the operator's log, or of another process of the garden on this machine",
    positionals: [{ name: 'PROCESS' }],
    options: [
      { name: 'lines', value: 'N', type: 'integer', isForExtraWord: true, summary: 'how many lines (default: 200)' },
    ],
    examples: ['coppice logs', 'coppice logs kube-apiserver --lines 50'],
    load: () => import('./commands/logs.ts'),
  },
  {
    name: 'rehearse',
    summary: 'replay a demand trace against a simulated cloud: what would be created, when, and for how much',
    description:
      "Runs the operator's own planning code for the WorkerClusters in the manifests, with simulated time and a simulated cloud. " +
      'Latency, faults and quotas of that cloud come from spec.providerConfig.simulation of the CloudProfile. It needs no garden and ' +
      'creates nothing. The trace is CSV (time,cluster,event,dataPlaneNodes,pool,minimum,maximum) or JSON lines; see ' +
      'docs/tasks/rehearse.md. The same seed gives the same result.',
    positionals: [],
    options: [
      { ...FILES, summary: 'manifests: WorkerClusters, and CloudProfiles and Quotas if yours differ' },
      { name: 'trace', value: 'FILE', summary: 'the demand: the wanted size of each cluster over time' },
      {
        name: 'simulation',
        value: 'FILE',
        summary: 'how the clouds behave: YAML, by CloudProfile, in place of their spec.providerConfig.simulation',
      },
      {
        name: 'per',
        value: 'N',
        summary: 'for a curve: the demand that one replica serves; for arrivals: replay one of N',
      },
      { name: 'replica', value: 'SIZE', summary: 'what a replica of a curve asks for, such as cpu=900m,memory=2Gi' },
      { name: 'chart', value: 'FILE', summary: 'draw demand, capacity and cost as SVG' },
      {
        name: 'until',
        value: 'TIME',
        summary: 'when to stop, as a duration or a date (default: at the end of the trace)',
      },
      {
        name: 'seed',
        value: 'N',
        type: 'integer',
        summary: 'the seed of the random numbers; the same seed gives the same result',
      },
      { name: 'speed', value: 'N', summary: 'how much faster than real time to run (default: as fast as possible)' },
      {
        name: 'timeline',
        value: 'N',
        type: 'integer',
        summary: 'how many lines of the timeline to show (default: 200)',
      },
      OUTPUT('table', 'json', 'yaml'),
    ],
    examples: [
      'coppice rehearse -f clusters.yaml --trace demand.csv --simulation simulation.yaml',
      'coppice rehearse -f clusters.yaml --trace demand.jsonl --until 7d --seed 3 -o json',
    ],
    load: () => import('./commands/rehearse.ts'),
  },
  {
    name: 'hubs',
    summary: 'show which clusters are members of which hubs, since when, and what they wait for',
    description:
      'Lists the hubs, and the clusters that are in them, join them or leave them, in all namespaces unless you give one. With a NAME ' +
      'it lists only that hub. "coppice hubs audit" searches the garden, all hubs and all clusters for objects that deleted Memberships ' +
      'left behind. Its exit code is 0 when it could check everything and found nothing. It needs permission to read the kubeconfigs of ' +
      'hubs and clusters. See docs/tasks/hub.md.',
    positionals: [{ name: 'NAME|audit', complete: ['audit'] }],
    options: [{ name: 'clean', summary: 'with audit: remove what it finds' }, OUTPUT('json', 'yaml')],
    examples: ['coppice hubs', 'coppice hubs production -n shop', 'coppice hubs audit --clean'],
    load: () => import('./commands/hubs.ts'),
  },
  {
    name: 'burst',
    summary: 'show which clusters were bought for waiting work, why, and for how much',
    description:
      'Lists the BurstPolicies of a namespace, with the cost of their clusters. "coppice burst explain" shows for each policy, or only ' +
      'for NAME, which work waits, what was decided when, and which alternatives were rejected and why. "coppice burst plan" ' +
      'shows what the operator would do now, and its price, if the waiting work had already waited long enough. It changes nothing, and ' +
      'needs permission to read the kubeconfigs of hubs and clusters. See docs/tasks/burst.md.',
    positionals: [{ name: 'explain|plan', complete: ['explain', 'plan'] }, { name: 'NAME' }],
    options: [{ name: 'all-namespaces', short: 'A', summary: 'in every namespace' }, OUTPUT('json', 'yaml')],
    examples: ['coppice burst -A', 'coppice burst explain peak -n shop', 'coppice burst plan peak -n shop'],
    load: () => import('./commands/burst.ts'),
  },
  {
    name: 'demo',
    summary: 'show a burst: a cluster is full, a second one is bought, filled, and deleted after the peak',
    description:
      '"coppice demo burst" needs an embedded garden ("coppice up") and takes some minutes. It creates a small private cluster and ' +
      'fills it. A BurstPolicy then buys a second cluster for the work that does not fit, and deletes it after the peak. All machines ' +
      'are local and nothing is billed; the prices shown are those of clouds. The exit code is 0 when every step succeeded. The demo ' +
      'deletes all that it created, also after Ctrl-C. With --karmada the work is in that Karmada, whose own scheduler places it; that ' +
      'Karmada must be able to reach this machine. See docs/seen/burst-demo.md.',
    positionals: [{ name: 'burst', required: true, complete: ['burst'] }],
    options: [
      {
        name: 'karmada',
        value: 'KUBECONFIG',
        summary: 'use this Karmada: the kubeconfig of its API server (choose a context with --context)',
      },
    ],
    examples: [
      'coppice demo burst',
      'coppice demo burst -v --timeout 10m',
      'coppice demo burst --karmada ~/.kube/karmada.config',
    ],
    endsItself: true,
    load: () => import('./commands/demo.ts'),
  },
  {
    name: 'sweep',
    summary: 'list cloud resources of clusters that no longer exist, and remove them on request',
    description:
      'Searches cloud accounts for resources that have the tags of this garden but belong to no WorkerCluster. It uses the credentials ' +
      'named by CredentialsBindings, by clusters, and by clusters that were deleted by force. It needs permission to read those Secrets.',
    positionals: [],
    options: [
      { name: 'provider', value: 'NAME', summary: 'only this CloudProfile, or CloudProfiles of this provider type' },
      { name: 'region', value: 'REGION', summary: 'only this region (default: all regions of the CloudProfile)' },
      { name: 'yes', short: 'y', summary: 'remove what it lists' },
      OUTPUT('json', 'yaml'),
    ],
    examples: ['coppice sweep', 'coppice sweep --provider aws --region eu-central-1 --yes'],
    load: () => import('./commands/sweep.ts'),
  },
  {
    name: 'backups',
    summary: "list the snapshots of a cluster's etcd, take one now, or download one",
    description:
      'Lists the bucket of the seed that hosts or hosted the cluster. Snapshots of a deleted cluster stay for ' +
      'spec.backup.deletionGracePeriodHours of the Seed. A download is verified by its digest, readable only by you, and never ' +
      "overwrites a file. It needs permission to read the bucket's credentials.",
    positionals: [{ name: 'NAME', required: true, complete: 'name' }],
    options: [
      { name: 'now', summary: 'take a snapshot and wait until it is stored' },
      {
        name: 'download',
        value: 'FILE',
        summary: 'download the newest snapshot into this file, which must not exist yet',
      },
      { name: 'snapshot', value: 'NAME', summary: 'download this snapshot instead of the newest' },
      OUTPUT('json', 'yaml'),
    ],
    examples: ['coppice backups demo', 'coppice backups demo --now --download demo.db'],
    load: () => import('./commands/backups.ts'),
  },
  {
    name: 'load',
    summary: 'copy an image from this machine into the garden, for all its clusters',
    description:
      'IMAGE comes from Docker, Podman or containerd, whichever has it first. FILE.tar (.tar.gz, .tar.zst, - for standard input) is the ' +
      'output of "docker save", "podman save" or "ctr images export", or an OCI layout. Every node of the garden can then pull the ' +
      'image, also nodes created later. Nodes that have an older image of the same name pull it now. The garden keeps the image until ' +
      '"coppice down".',
    positionals: [{ name: 'IMAGE|FILE.tar', required: true }],
    options: [
      { name: 'cluster', value: 'NAME', summary: 'pull it onto all nodes of this cluster now' },
      { name: 'as', value: 'IMAGE', summary: 'the image name that pods use (default: its own name)' },
    ],
    examples: ['coppice load app:dev', 'coppice load app.tar --cluster demo', 'docker save app:dev | coppice load -'],
    load: () => import('./commands/load.ts'),
  },
  {
    name: 'kubeconfig',
    summary: 'print a short-lived kubeconfig of a cluster, or that of the garden, or merge it into your own',
    description:
      'Prints a kubeconfig that expires after an hour, or after --expires-in. Its private key is generated here and never sent. ' +
      'With --exec, kubectl renews the certificate by calling coppice. --merge adds such a context to the first file of $KUBECONFIG ' +
      '(else ~/.kube/config) and changes nothing else in it. --remove removes that context, even when the cluster no longer exists. ' +
      'With --secret, and for clusters of mode Managed or Attached, it prints the kubeconfig in the Secret that programs read. See ' +
      'docs/tasks/kubeconfigs.md. With --garden the certificate is made from the authority in the folder of the garden.',
    positionals: [{ name: 'NAME', complete: 'name' }],
    options: [
      { name: 'garden', summary: 'the kubeconfig of the garden of this machine, for its administrator' },
      { name: 'viewer', summary: 'one that may read everything except Secrets' },
      {
        name: 'expires-in',
        value: 'DURATION',
        type: 'duration',
        summary: 'how long the certificate is valid, 10m to 24h (default: 1h)',
      },
      { name: 'exec', summary: 'let kubectl renew the certificate by calling coppice' },
      { name: 'secret', summary: 'print the kubeconfig in Secret NAME-kubeconfig, which is for programs' },
      { name: 'credential', summary: 'answer kubectl, which calls coppice for a certificate', hidden: true },
      { name: 'merge', summary: 'add it as a context to your own kubeconfig' },
      { name: 'remove', summary: 'remove that context from your own kubeconfig' },
    ],
    examples: [
      'coppice kubeconfig demo --expires-in 1h > demo.kubeconfig',
      'coppice kubeconfig demo --viewer --exec > demo.kubeconfig',
      'coppice kubeconfig demo --merge && kubectl --context coppice/default/demo get nodes',
      'coppice kubeconfig --garden',
    ],
    load: () => import('./commands/kubeconfig.ts'),
  },
  {
    name: 'wait',
    summary: 'wait until a cluster is Ready, Hibernated or Deleted, and show its progress',
    positionals: [{ name: 'NAME', required: true, complete: 'name' }],
    options: [
      {
        name: 'for',
        value: 'Ready|Hibernated|Deleted',
        choices: ['Ready', 'Hibernated', 'Deleted'],
        isForExtraWord: true,
        summary: 'what to wait for (default: Ready)',
      },
    ],
    examples: ['coppice wait demo --for Ready --timeout 5m'],
    endsItself: true,
    load: () => import('./commands/wait.ts'),
  },
  {
    name: 'completion',
    summary: 'print the completion script of a shell',
    positionals: [{ name: 'SHELL', required: true, complete: ['bash', 'zsh', 'fish'] }],
    options: [],
    examples: ['source <(coppice completion bash)', 'coppice completion fish | source'],
    load: () => import('./commands/completion.ts'),
  },
  {
    name: 'version',
    summary: 'print the versions of coppice and of its API server',
    positionals: [],
    options: [{ name: 'client', summary: 'only the version of coppice' }, OUTPUT('json', 'yaml')],
    load: () => import('./commands/version.ts'),
  },
  {
    name: 'help',
    summary: 'show help, for all commands or for one',
    positionals: [{ name: 'COMMAND', complete: 'command' }],
    options: [],
    load: async () => (await import('./commands/help.ts')).helpOn(COMMAND_TABLE),
  },
  {
    name: 'garden',
    summary: 'run a part of the garden in this process',
    positionals: [{ name: 'WHAT', required: true, complete: ['run'] }],
    options: [],
    hidden: true,
    endsItself: true,
    load: () => import('./commands/garden.ts'),
  },
  {
    name: '__complete',
    summary: 'answer the completion script of a shell',
    positionals: [{ name: 'WORD', repeatable: true }],
    options: [],
    hidden: true,
    load: async () => (await import('./commands/complete.ts')).completionOf(COMMAND_TABLE),
  },
];

/** The command table, for commands that describe others: help, completion, reference. */
export const COMMAND_TABLE: CommandTable = { commands: COMMANDS, globals: GLOBAL_OPTIONS };
