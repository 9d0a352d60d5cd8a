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
  { name: 'kubeconfig', value: 'FILE', summary: 'the API server to talk to (see below for the default)' },
  { name: 'context', value: 'NAME', summary: 'the context of that kubeconfig' },
  { name: 'timeout', value: MINUTE, type: 'duration', summary: 'give up after this long, e.g. 90s or 5m' },
  { name: 'verbose', short: 'v', summary: 'say more' },
];

const DETACH: OptionSpec = { name: 'detach', short: 'd', summary: 'leave everything running and return' };
const SEED_KUBECONFIG: OptionSpec = {
  name: 'seed-kubeconfig',
  value: 'FILE',
  summary: "use this Kubernetes (kind, k3d, a cloud's) as the seed instead of a local one",
};
/** Of the garden's mirror of images. They hold until they are given again. */
const REGISTRIES: readonly OptionSpec[] = [
  {
    name: 'registry',
    value: 'HOST:PORT',
    repeatable: true,
    summary: 'pods may pull from this registry on this machine, or without TLS; "none" takes all back',
  },
  {
    name: 'registry-login',
    value: 'HOST',
    repeatable: true,
    summary: 'pull from this registry with this machine\'s docker login; "none" takes all back',
  },
  { name: 'image-cache', value: 'SIZE', summary: 'what the cache of pulled images may hold (default: 10Gi)' },
];
/** It holds until it is given again. */
const EGRESS: readonly OptionSpec[] = [
  { name: 'no-egress', summary: 'pods reach nothing outside of the garden, from now on' },
  {
    name: 'egress',
    value: 'all|public|none',
    choices: ['all', 'public', 'none'],
    summary: 'pods reach what this machine reaches (the default), or public addresses alone, or nothing',
  },
];
const OUTPUT = (...choices: string[]): OptionSpec => ({
  name: 'output',
  short: 'o',
  value: choices.join('|'),
  choices,
  summary: 'the form of the output',
});
const FILES: OptionSpec = {
  name: 'filename',
  short: 'f',
  value: 'FILE',
  repeatable: true,
  summary: 'a file, a folder, or - for standard input; may be given more than once',
};

/** Every command, in the order that help shows them. The code of a command is loaded when it runs. */
export const COMMANDS: readonly CommandSpec[] = [
  {
    name: 'start',
    summary: 'bring up a garden and a first cluster, and show it live until it is Ready',
    description:
      'Sets up the tools, brings up the garden with its seed, makes the cluster of examples/local.yaml unless it exists, and shows it ' +
      "until it is Ready. Then it stays until Ctrl-C, which stops the garden's processes and keeps its state. " +
      'The exit code is then 0, or 130 when not all was up yet.',
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
    summary: 'bring up the garden (or pick up its state after a reboot)',
    description:
      'Brings up the garden and its seed, and stays until Ctrl-C, which stops its processes and keeps its state. ' +
      'With --detach it returns as soon as the garden is up.',
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
    summary: 'take the garden away, with every cluster in it and its state',
    positionals: [],
    options: [{ name: 'leave-clouds', summary: 'even if clusters are left in a cloud that nobody else knows of' }],
    endsItself: true,
    load: () => import('./commands/down.ts'),
  },
  {
    name: 'stop',
    summary: 'stop the garden\'s processes and keep its state; "coppice up" goes on from there',
    positionals: [],
    options: [],
    endsItself: true,
    load: () => import('./commands/stop.ts'),
  },
  {
    name: 'status',
    summary: 'show how the garden, its seeds and its clusters are',
    description: 'Exit code 0 when the garden runs and all its parts are healthy, else 1.',
    positionals: [],
    options: [OUTPUT('json', 'yaml')],
    load: () => import('./commands/status.ts'),
  },
  {
    name: 'get',
    summary: 'list clusters and other objects',
    description:
      'KIND is workerclusters (the default), shoots, seeds, cloudprofiles, credentialsbindings, quotas or all. With -o json or yaml it prints a ' +
      'Kubernetes List, or the object itself when a NAME is given.',
    positionals: [
      { name: 'KIND', complete: 'kind' },
      { name: 'NAME', complete: 'name' },
    ],
    options: [
      { name: 'all-namespaces', short: 'A', summary: 'in every namespace' },
      { name: 'selector', short: 'l', value: 'SELECTOR', summary: 'only objects with these labels' },
      OUTPUT('json', 'yaml', 'wide', 'name'),
      { name: 'no-headers', summary: 'leave out the header of a table' },
    ],
    examples: ['coppice get', 'coppice get workerclusters -A -o json', 'coppice get seed local -o yaml'],
    load: () => import('./commands/get.ts'),
  },
  {
    name: 'describe',
    summary: 'show one cluster as a tree: its parts, how each is, and why',
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
    summary: 'make or change objects as a manifest says',
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
      { name: 'ignore-not-found', summary: 'a cluster that does not exist is fine' },
    ],
    examples: ['coppice delete demo --wait --timeout 5m'],
    endsItself: true,
    load: () => import('./commands/delete.ts'),
  },
  {
    name: 'scale',
    summary: "change the number of a cluster's nodes",
    positionals: [{ name: 'NAME', required: true, complete: 'name' }],
    options: [{ name: 'nodes', value: 'N', type: 'integer', summary: 'how many data plane nodes it shall have' }],
    examples: ['coppice scale demo --nodes 5'],
    load: () => import('./commands/scale.ts'),
  },
  {
    name: 'rehearse',
    summary: 'play a demand trace against a simulated cloud: what would be made, when, and for how much',
    description:
      "Runs the WorkerClusters of manifests through the operator's own deciders on a clock of its own, with machines from a " +
      'simulated cloud (latency, faults and quotas: spec.providerConfig.simulation of the CloudProfile). No garden is needed and ' +
      'nothing is made. The trace is CSV (time,cluster,event,dataPlaneNodes,pool,minimum,maximum) or JSON lines; ' +
      'docs/guides/rehearse.md tells all. The same seed gives the same result.',
    positionals: [],
    options: [
      { ...FILES, summary: 'manifests: WorkerClusters, and CloudProfiles and Quotas if yours differ' },
      { name: 'trace', value: 'FILE', summary: 'the demand: what each cluster is asked to be, and when' },
      {
        name: 'simulation',
        value: 'FILE',
        summary: 'how the clouds behave: YAML, by CloudProfile, in place of their spec.providerConfig.simulation',
      },
      {
        name: 'per',
        value: 'N',
        summary: 'of a curve: the demand that one replica serves; of arrivals: one of N is played',
      },
      { name: 'replica', value: 'SIZE', summary: 'what a replica of a curve asks for, such as cpu=900m,memory=2Gi' },
      { name: 'chart', value: 'FILE', summary: 'draw demand, capacity and cost as SVG' },
      { name: 'until', value: 'TIME', summary: 'when to end, as a duration or a date (default: with the trace)' },
      { name: 'seed', value: 'N', type: 'integer', summary: 'another run by the same rules' },
      { name: 'speed', value: 'N', summary: 'how much faster than real time (default: no real time passes)' },
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
    summary: 'show which cluster is in which hub, since when, and what it waits for',
    description:
      'Lists the hubs, and the clusters that are in them, join them or leave them, in all namespaces unless one is given. ' +
      'With a NAME only that hub. "coppice hubs audit" looks in the garden, in all hubs and in all clusters for what memberships that are ' +
      'no more have left there; its exit code is 0 when there is nothing, and everything could be looked at. It needs the right to ' +
      'read the kubeconfigs of hubs and clusters. docs/hubs.md tells how clusters join and leave.',
    positionals: [{ name: 'NAME|audit', complete: ['audit'] }],
    options: [{ name: 'clean', summary: 'with audit: remove what is found' }, OUTPUT('json', 'yaml')],
    examples: ['coppice hubs', 'coppice hubs production -n shop', 'coppice hubs audit --clean'],
    load: () => import('./commands/hubs.ts'),
  },
  {
    name: 'burst',
    summary: 'show which clusters were bought for work without a place, why, and for how much',
    description:
      'Lists the BurstPolicies of a namespace, with what their clusters cost. "coppice burst explain" tells of each, or of the one with ' +
      'that NAME, what waits, what was decided and when, what else there was to choose, and why not. "coppice burst plan" tells what would ' +
      'be done now, and its price, if what waits had waited long enough; it does nothing, and needs the right to read the kubeconfigs of ' +
      'hubs and clusters. docs/burst.md tells how it decides.',
    positionals: [{ name: 'explain|plan', complete: ['explain', 'plan'] }, { name: 'NAME' }],
    options: [{ name: 'all-namespaces', short: 'A', summary: 'in every namespace' }, OUTPUT('json', 'yaml')],
    examples: ['coppice burst -A', 'coppice burst explain peak -n shop', 'coppice burst plan peak -n shop'],
    load: () => import('./commands/burst.ts'),
  },
  {
    name: 'demo',
    summary: 'play a peak live: a full cluster, a second one that is bought, filled and given back',
    description:
      '"coppice demo burst" needs an embedded garden ("coppice up") and some minutes. It makes a small private cluster and fills it, has a ' +
      'BurstPolicy buy a second one for what does not fit, and has it given back after the peak. All machines are local and nothing is billed: ' +
      'the prices that it tells are what clouds ask for. The exit code is 0 when every step was seen. It takes away all that it made, also ' +
      'after Ctrl-C. With --karmada the work is in that Karmada, whose own scheduler fills the clusters; it has to reach this machine. ' +
      'docs/burst.md tells how it decides.',
    positionals: [{ name: 'burst', required: true, complete: ['burst'] }],
    options: [
      {
        name: 'karmada',
        value: 'KUBECONFIG',
        summary: 'play it in a Karmada: kubeconfig of its API server (--context: which of it)',
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
    summary: 'list what is left in clouds that belongs to no cluster any more, and remove it on request',
    description:
      'Looks in every account whose credentials a CredentialsBinding, a cluster, or a cluster that was deleted by force ' +
      'names, for what bears the tags of this garden but belongs to no WorkerCluster. Needs the right to read those Secrets.',
    positionals: [],
    options: [
      { name: 'provider', value: 'NAME', summary: 'only this CloudProfile, or profiles of this type' },
      { name: 'region', value: 'REGION', summary: 'only this region (default: all of the profile)' },
      { name: 'yes', short: 'y', summary: 'remove what is found' },
      OUTPUT('json', 'yaml'),
    ],
    examples: ['coppice sweep', 'coppice sweep --provider aws --region eu-central-1 --yes'],
    load: () => import('./commands/sweep.ts'),
  },
  {
    name: 'backups',
    summary: "list the snapshots of a cluster's etcd, take one now, or download one",
    description:
      'Looks into the bucket of the seed that hosts the cluster, or hosted it: of a cluster that is deleted snapshots stay for ' +
      "spec.backup.deletionGracePeriodHours of the Seed. Needs the right to read the bucket's credentials. What is downloaded was seen " +
      'to be whole, is readable by you alone and never put over another file.',
    positionals: [{ name: 'NAME', required: true, complete: 'name' }],
    options: [
      { name: 'now', summary: 'have a snapshot taken, and wait for it' },
      { name: 'download', value: 'FILE', summary: 'put the newest snapshot into this new file' },
      { name: 'snapshot', value: 'NAME', summary: 'which one to download' },
      OUTPUT('json', 'yaml'),
    ],
    examples: ['coppice backups demo', 'coppice backups demo --now --download demo.db'],
    load: () => import('./commands/backups.ts'),
  },
  {
    name: 'load',
    summary: 'give an image of this machine to the clusters of the garden',
    description:
      'IMAGE is taken from Docker, Podman or containerd, the first that has it; FILE.tar (.tar.gz, .tar.zst, - for standard input) is what ' +
      '"docker save", "podman save" or "ctr images export" writes, or an OCI layout. Every node of the garden can pull it from then on, also ' +
      'nodes that are made later; those that have an older image of the name take it at once. It stays until "coppice down".',
    positionals: [{ name: 'IMAGE|FILE.tar', required: true }],
    options: [
      { name: 'cluster', value: 'NAME', summary: 'have all nodes of this cluster take it at once' },
      { name: 'as', value: 'IMAGE', summary: 'the name that pods call it by (default: its own)' },
    ],
    examples: ['coppice load app:dev', 'coppice load app.tar --cluster demo', 'docker save app:dev | coppice load -'],
    load: () => import('./commands/load.ts'),
  },
  {
    name: 'kubeconfig',
    summary: 'print a short-lived kubeconfig of a cluster, or that of the garden, or merge it into your own',
    description:
      'Prints to standard output a kubeconfig that ends after ten minutes, or after --expires-in. Its key is made here and is never sent. With ' +
      '--exec kubectl renews it by calling coppice. --merge adds such a context to the first file of $KUBECONFIG (else ~/.kube/config) and ' +
      'changes nothing else in it; --remove takes that context away again, also when the cluster is gone. Of clusters that a cloud manages, ' +
      'or that are attached, and with --secret, it prints what is in the Secret that programs read. docs/guides/kubeconfigs.md tells who may have which.',
    positionals: [{ name: 'NAME', complete: 'name' }],
    options: [
      { name: 'garden', summary: 'the garden itself' },
      { name: 'viewer', summary: 'one that reads all but Secrets' },
      {
        name: 'expires-in',
        value: 'DURATION',
        type: 'duration',
        summary: 'how long a certificate lasts, 10m to 24h (default: 10m)',
      },
      { name: 'exec', summary: 'have kubectl renew it by calling coppice' },
      { name: 'secret', summary: 'what is in the Secret NAME-kubeconfig, for programs' },
      { name: 'credential', summary: 'answer kubectl, which calls coppice for a certificate', hidden: true },
      { name: 'merge', summary: 'add a context to your own kubeconfig' },
      { name: 'remove', summary: 'take that context out of your own kubeconfig' },
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
    summary: 'wait until a cluster is Ready or Deleted, with a live progress line',
    positionals: [{ name: 'NAME', required: true, complete: 'name' }],
    options: [
      {
        name: 'for',
        value: 'Ready|Deleted',
        choices: ['Ready', 'Deleted'],
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
    summary: 'print the version of coppice and of the API server it talks to',
    positionals: [],
    options: [{ name: 'client', summary: 'only of coppice' }, OUTPUT('json', 'yaml')],
    load: () => import('./commands/version.ts'),
  },
  {
    name: 'help',
    summary: 'show help, also for one command',
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

/** What coppice understands. Commands that tell of others are given it. */
export const COMMAND_TABLE: CommandTable = { commands: COMMANDS, globals: GLOBAL_OPTIONS };
