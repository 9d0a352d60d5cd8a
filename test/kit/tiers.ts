interface Tier {
  tier: string;
  command: string;
  what: string;
  needs: string;
}

/** The tiers of tests: `npm test -- --list` prints them, and CONTRIBUTING shows them. */
const TIERS: readonly Tier[] = [
  {
    tier: 'unit',
    command: 'npm run test:unit',
    what: 'pure deciders, renderers, the house, simulated days',
    needs: 'nothing',
  },
  {
    tier: 'integration',
    command: 'npm run test:integration',
    what: "the operator's parts on a real etcd and API server; clouds as stand-ins",
    needs: 'tools',
  },
  {
    tier: 'e2e',
    command: 'npm run test:e2e -- FILES',
    what: 'real local seeds, nodes and pods; two files at once',
    needs: 'tools, root',
  },
  {
    tier: 'short',
    command: 'npm test',
    what: 'all of unit, with an eighth of the cases of properties; integration without clouds and most hubs; five files of e2e',
    needs: 'tools, root',
  },
  {
    tier: 'ci',
    command: 'npm test -- ci',
    what: 'the same with all cases, then the rest; some files and tests by turns, each at least every fourth commit',
    needs: 'tools, root, an hour',
  },
  {
    tier: 'all',
    command: 'npm run test:all',
    what: 'the same with every turn, and Kubernetes 1.35',
    needs: 'tools, root, hours',
  },
  {
    tier: 'hubs',
    command: 'npm run test:hubs',
    what: 'the real Karmada, Kueue, Open Cluster Management; no part of npm test',
    needs: 'their programs, built beside',
  },
  {
    tier: 'conformance',
    command: 'npm run test:conformance',
    what: "Kubernetes' own tests against a local cluster",
    needs: 'tools, root, an hour',
  },
  { tier: 'bench', command: 'npm run bench', what: 'the figures of docs/seen/benchmarks.md', needs: 'tools, root' },
];

/** A Markdown table of the tiers. */
export function listTiers(): string {
  const rows = [
    ['tier', 'command', 'what it runs', 'it needs'],
    ['---', '---', '---', '---'],
    ...TIERS.map(({ tier, command, what, needs }) => [tier, `\`${command}\``, what, needs]),
  ];
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
