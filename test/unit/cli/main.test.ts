import { describe, expect, it } from 'vitest';
import { notFound } from '../../../operator/cli/commands/get.ts';
import { COMMANDS, GLOBAL_OPTIONS } from '../../../operator/cli/commands.ts';
import { completionsFor } from '../../../operator/cli/completion.ts';
import { kubeconfigSources } from '../../../operator/cli/connect.ts';
import { CliError, EXIT, explain, InterruptedError } from '../../../operator/cli/errors.ts';
import { GardenStages } from '../../../operator/cli/gardenview.ts';
import { enterPersonsFolder, projectFile, quote, shownPath } from '../../../operator/cli/invocation.ts';
import { HUB_KIND, kindOf } from '../../../operator/cli/kinds.ts';
import { main } from '../../../operator/cli/main.ts';
import { parseManifests } from '../../../operator/cli/manifests.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { KubeApiError, KubeUnreachableError } from '../../../operator/kube/errors.ts';
import { aliasBomb } from '../../kit/alias-bomb.ts';

async function cli(line: string, env: Record<string, string> = {}, tty = false) {
  let out = '';
  let err = '';
  const stream = (write: (text: string) => void) => ({ isTTY: tty, columns: 80, write });
  const terminal = createTerminal({
    out: stream((text) => {
      out += text;
    }),
    err: stream((text) => {
      err += text;
    }),
    env,
  });
  const code = await main(line.split(' ').filter(Boolean), terminal, env, new AbortController().signal);
  return { out, err, code };
}

describe('coppice', () => {
  it('prints help without a command', async () => {
    const { out, err, code } = await cli('');
    expect([code, err]).toEqual([0, '']);
    for (const command of COMMANDS) expect(out.includes(`  ${command.name} `)).toBe(!command.hidden);
    expect(out).toContain('130  interrupted');
  });

  it("has help for each command, within the terminal's width", async () => {
    for (const command of COMMANDS.filter((spec) => !spec.hidden)) {
      const { out, code } = await cli(`help ${command.name}`, {}, true);
      expect(code).toBe(0);
      expect(out).toContain(`Usage: coppice ${command.name}`);
      expect((await cli(`${command.name} --help`, {}, true)).out).toBe(out);
      for (const line of out.split('\n').filter((text) => !text.startsWith('  coppice')))
        expect(line.length).toBeLessThanOrEqual(80);
    }
  });

  it.each([
    ['gte', 2, 'error: unknown command "gte"; did you mean "get"?\n'],
    ['get shots', 2, 'error: get: unknown kind "shots"; did you mean "shoots"?\n'],
    [
      'get nodes',
      2,
      'error: get: unknown kind "nodes"; "coppice get" lists kinds of Coppice; run "kubectl --context coppice/NAMESPACE/NAME get nodes" for those of a cluster\n',
    ],
    ['get all demo', 2, 'error: "get all" takes no NAME\n'],
    ['scale demo', 2, 'error: scale needs --nodes N; for example: coppice scale demo --nodes 3\n'],
    ['scale demo --nodes -1', 2, 'error: a cluster cannot have -1 nodes; give a number from 0 up\n'],
    ['kubeconfig', 2, 'error: kubeconfig needs the NAME of a cluster, or --garden\n'],
    ['kubeconfig demo --garden', 2, 'error: kubeconfig needs the NAME of a cluster, or --garden, and not both\n'],
    ['completion tcsh', 2, 'error: there is no completion for "tcsh"; choose bash, zsh or fish\n'],
    [
      'get --kubeconfig /no/such/file',
      3,
      'error: kubeconfig /no/such/file does not exist; give another with --kubeconfig\n',
    ],
    ['apply -f /no/such/file', 3, 'error: there is no file /no/such/file\n'],
    [
      'delete wc demo',
      2,
      'error: delete takes names of clusters only, and "wc" is a kind; run "coppice delete demo"\n',
    ],
    [
      'delete seed local',
      2,
      'error: delete takes names of clusters only, and "seed" is a kind; run "kubectl delete seed local"\n',
    ],
    ['describe', 2, 'error: describe needs a NAME; usage: coppice describe [KIND] NAME\n'],
  ])('"%s" ends with %i', async (line, code, err) => {
    expect(await cli(line, { HOME: '/nonexistent', COPPICE_HOME: '/nonexistent' })).toEqual({ out: '', err, code });
  });

  it('says what to do when there is no garden', async () => {
    const { err, code } = await cli('get', { HOME: '/nonexistent', COPPICE_HOME: '/nonexistent' });
    expect([code, err]).toEqual([
      1,
      'error: there is no garden on this machine, and no kubeconfig; run "coppice up", or choose an API server with --kubeconfig\n',
    ]);
  });

  it('colours only a terminal, and not with NO_COLOR', async () => {
    expect((await cli('gte', {}, true)).err).toContain('\u001b[31m');
    expect((await cli('gte', { NO_COLOR: '1' }, true)).err).not.toContain('\u001b');
    expect((await cli('gte', { TERM: 'dumb' }, true)).err).not.toContain('\u001b');
  });

  it.each(['bash', 'zsh', 'fish'])('has a completion script for %s', async (shell) => {
    expect((await cli(`completion ${shell}`)).out).toContain('coppice __complete');
  });
});

describe('errors', () => {
  const status = (code: number, reason: string, message: string) =>
    new KubeApiError('GET /x', code, { reason, message });
  const UNCHECKED =
    'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation';
  const TYPED = 'failed to create typed patch object (default/a; multi-cluster.demo.io/v1, Kind=WorkerCluster)';
  it.each([
    [new CliError('a\nb', { advice: 'do c' }), 'a b; do c', EXIT.failed],
    [new InterruptedError(), 'interrupted', EXIT.interrupted],
    [new DOMException('This operation was aborted', 'AbortError'), 'interrupted', EXIT.interrupted],
    [status(404, 'NotFound', 'workerclusters "x" not found'), 'workerclusters "x" not found', EXIT.notFound],
    [status(422, 'Invalid', 'spec.x: wrong'), 'spec.x: wrong', EXIT.failed],
    [
      status(422, 'Invalid', 'WorkerCluster.multi-cluster.demo.io "two" is invalid: spec.x: wrong'),
      'spec.x: wrong',
      EXIT.failed,
    ],
    [
      status(422, 'Invalid', `invalid: [spec.x: Unsupported value: 2, <nil>: Invalid value: null: ${UNCHECKED}]`),
      'invalid: [spec.x: Unsupported value: 2]',
      EXIT.failed,
    ],
    [
      status(500, '', `${TYPED}: .spec.pools[name="a"].machinType: field not declared in schema`),
      '.spec.pools[name="a"].machinType: field not declared in schema; find the right name with "kubectl explain workercluster.spec.pools"',
      EXIT.failed,
    ],
    [
      status(
        500,
        '',
        `${TYPED}: errors:\n  .spec.a: field not declared in schema\n  .spec.b: field not declared in schema`,
      ),
      '.spec.a: field not declared in schema .spec.b: field not declared in schema; find the right name with "kubectl explain workercluster.spec"',
      EXIT.failed,
    ],
    [
      status(404, 'NotFound', 'namespaces "team" not found'),
      'namespaces "team" not found; make it with "kubectl create namespace team"',
      EXIT.notFound,
    ],
    [
      status(500, '', `${TYPED}: .spec.trigger.pendingFor: expected string, got &value.valueUnstructured{Value:30}`),
      '.spec.trigger.pendingFor: expected string, got 30',
      EXIT.failed,
    ],
    [
      status(
        500,
        '',
        `${TYPED}: errors:\n  .spec.a: expected string, got &value.valueUnstructured{Value:map[x:1]}\n  .spec.b: expected list, got &value.valueUnstructured{Value:true}`,
      ),
      '.spec.a: expected string, got map[x:1] .spec.b: expected list, got true',
      EXIT.failed,
    ],
    [status(403, 'Forbidden', 'you may not'), 'you may not', EXIT.failed],
    ['text', 'text', EXIT.failed],
    [undefined, 'undefined', EXIT.failed],
  ])('explains %s', (error, message, exitCode) => {
    expect(explain(error)).toEqual({ message, exitCode });
  });

  it.each<[string[], string]>([
    [['inventory', 'far'], 'there are: far, inventory'],
    [['karmad'], 'did you mean "karmad"?'],
    [[], '"coppice get hubs" lists all that exist'],
    [Array.from({ length: 13 }, (_, n) => `hub-${n}`), '"coppice get hubs" lists all that exist'],
  ])('says of a name that is not there, beside %j, %s', (existing, advice) => {
    expect(notFound(HUB_KIND, 'karmada', undefined, existing)).toMatchObject({
      message: 'there is no Hub "karmada"',
      advice,
      exitCode: EXIT.notFound,
    });
  });

  it('name the cure when the API server does not answer or the kind is unknown', () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    expect(explain(new KubeUnreachableError('GET /x at https://127.0.0.1:6443', refused)).message).toMatch(
      /^https:\/\/127.0.0.1:6443 does not answer: connect ECONNREFUSED; start the garden with "coppice up"/,
    );
    expect(explain(new TypeError('fetch failed', { cause: refused })).message).toContain('coppice up');
    const foreign = Object.assign(new Error('unable to verify the first certificate; try running Node.js with ...'), {
      code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    });
    expect(explain(new KubeUnreachableError('GET /x at https://10.0.0.1:6443', foreign)).message).toBe(
      'the certificate of https://10.0.0.1:6443 is not signed by the authority in this kubeconfig; choose the kubeconfig of this API server with --kubeconfig or --context',
    );
    expect(explain(new KubeApiError('GET /x', 404, '404 page not found')).message).toContain('CRDs of Coppice');
    const forbidden = (user: string) =>
      explain(new KubeApiError('GET /x', 403, { message: `x is forbidden: User "${user}" cannot list x` })).message;
    expect(forbidden('coppice:admin')).toContain('"coppice up" gives them');
    expect(forbidden('ada')).not.toContain('coppice up');
  });
});

describe('kinds', () => {
  it.each(['wc', 'workerclusters', 'WorkerCluster', 'workerclusters.multi-cluster.demo.io'])(
    '%s is WorkerCluster',
    (word) => {
      expect(kindOf(word)?.resource.kind).toBe('WorkerCluster');
    },
  );
});

describe('kubeconfig choice', () => {
  const files = (flag: string | undefined, env: Record<string, string>) =>
    kubeconfigSources(flag, env).flatMap((source) => source.files);
  it('is the option, then COPPICE_KUBECONFIG, then the garden, then KUBECONFIG', () => {
    const env = { COPPICE_KUBECONFIG: '/c', COPPICE_HOME: '/h', KUBECONFIG: '/k' };
    expect(files('/flag', env)).toEqual(['/flag']);
    expect(files(undefined, env)).toEqual(['/c']);
    const [garden, personal] = files(undefined, { ...env, COPPICE_KUBECONFIG: '' });
    expect(garden).toMatch(/^\/h\/.*admin/);
    expect(personal).toBe('/k');
  });
});

describe('completion', () => {
  const complete = (line: string) => {
    const wanted = completionsFor(line.split(' '), COMMANDS, GLOBAL_OPTIONS);
    return wanted.what === 'names'
      ? `names of ${wanted.kind.resource.plural}`
      : wanted.what === 'words'
        ? wanted.words
        : wanted.what;
  };
  it.each([
    ['get -o ', ['json', 'yaml', 'wide', 'name']],
    ['get wc ', 'names of workerclusters'],
    ['get seeds ', 'names of seeds'],
    ['describe ', 'names of workerclusters'],
    ['delete a b ', 'names of workerclusters'],
    ['-n ', 'namespaces'],
    ['apply -f ', 'files'],
    ['completion ', ['bash', 'zsh', 'fish']],
    ['wait demo --for ', ['Ready', 'Hibernated', 'Deleted']],
    ['scale demo ', []],
  ])('after "%s"', (line, expected) => {
    expect(complete(line)).toEqual(expected);
  });

  it('offers commands first, then options of the command', () => {
    expect(complete('')).toContain('describe');
    expect(complete('')).not.toContain('garden');
    expect(complete('get --')).toEqual(expect.arrayContaining(['--all-namespaces', '--kubeconfig', '--help']));
  });
});

describe('manifests', () => {
  it('may have aliases, but none that expand to gigabytes', () => {
    const bomb = aliasBomb('apiVersion: v1\nkind: A\nmetadata: {name: a}');
    expect(() => parseManifests(bomb, 'f')).toThrow('f is not valid YAML: its aliases unfold to more');
    const text = 'apiVersion: v1\nkind: A\nmetadata: {name: a, labels: &same {app: a}}\nspec: {selector: *same}\n';
    expect(parseManifests(text, 'f')[0]!.object.spec).toEqual({ selector: { app: 'a' } });
  });

  it('are split into documents and items of Lists', () => {
    const text =
      'apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: A, metadata: {name: a}}]\n---\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n';
    expect(parseManifests(text, 'f').map(({ object, source }) => [object.kind, source])).toEqual([
      ['A', 'f, document 1'],
      ['B', 'f, document 3'],
    ]);
  });

  it.each([
    ['kind: A', 'f is not a Kubernetes object'],
    ['apiVersion: v1\nkind: A', 'the A has no metadata.name'],
    ['a: [', 'f is not valid YAML'],
  ])('refuses %j', (text, message) => {
    expect(() => parseManifests(text, 'f')).toThrow(message);
  });
});

describe('the stages of a garden', () => {
  it('end when the next begins; tools end by their fraction', () => {
    const stages = new GardenStages();
    expect(stages.record({ stage: 'tools', message: 'etcd' }, 0)).toBe('tools: etcd');
    expect(
      stages.record(
        { stage: 'tools', tool: 'kubelet', message: 'building', fraction: 0.5, remainingSeconds: 61 },
        1000,
      ),
    ).toBe('tools kubelet: building, 50 %, about 61 s left');
    expect(
      stages.record({ stage: 'tools', tool: 'kubelet', message: 'building', fraction: 0.6 }, 2000),
    ).toBeUndefined();
    // A log of a build that takes minutes goes on saying how far it is.
    const later = { stage: 'tools', tool: 'kubelet', message: 'building', fraction: 0.6, remainingSeconds: 40 };
    expect(stages.record(later, 22_000)).toBe('tools kubelet: building, 60 %, about 40 s left');
    stages.record({ stage: 'apiserver', message: 'starting' }, 25_000);
    expect(stages.lines(26_000, 100)).toEqual([
      '✔ tools etcd (0:25)',
      expect.stringContaining('kubelet ━━━━━━━━━━──────  60 % building'),
      expect.stringContaining('apiserver starting (0:01)'),
    ]);
    // Who pressed Ctrl-C has seen nothing fail.
    expect(stages.lines(26_000, 100, undefined, 'left').map((line) => line[0])).toEqual(['✔', '–', '–']);
    expect(stages.lines(26_000, 100, undefined, 'failed').map((line) => line[0])).toEqual(['✔', '✘', '✘']);
    stages.finish(27_000);
    expect(stages.lines(29_000, 100).every((line) => line.startsWith('✔'))).toBe(true);
  });
});

describe('the folder that file names are relative to', () => {
  const own = {
    npm_lifecycle_event: 'start',
    npm_package_json: projectFile('package.json'),
    INIT_CWD: '/no/such/folder',
  };
  it.each<[string, Record<string, string>, string[]]>([
    ['is where the person called npm start', own, ['/no/such/folder']],
    ['stays where npm runs another script', { ...own, npm_lifecycle_event: 'bench' }, []],
    ['stays where another project has a script start', { ...own, npm_package_json: '/elsewhere/package.json' }, []],
    ['stays without npm', {}, []],
  ])('%s', (_, env, expected) => {
    const entered: string[] = [];
    enterPersonsFolder(env, (folder) => void entered.push(folder));
    expect(entered).toEqual(expected);
  });

  it('is reported in one line when it no longer exists', async () => {
    expect(await cli('get', own)).toEqual({
      out: '',
      err: 'error: folder /no/such/folder, in which npm was called, cannot be entered (ENOENT); call "npm start" in one that exists\n',
      code: 1,
    });
  });
});

describe('commands as printed', () => {
  it('are short where possible, and quoted where needed', () => {
    expect(shownPath('/a/b/bin/coppice', '/a/b')).toBe('bin/coppice');
    expect(shownPath('/a/b', '/x/y/z/long')).toBe('/a/b');
    expect(quote('/a b/c')).toBe("'/a b/c'");
    expect(quote('bin/coppice')).toBe('bin/coppice');
  });
});
