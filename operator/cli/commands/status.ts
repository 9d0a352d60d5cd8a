import type { KubeObject } from '../../api/meta.ts';
import { egressLine } from '../../garden/egress/policy.ts';
import type { ComponentStatus, GardenStatus } from '../../garden/garden.ts';
import { isReady } from '../clusterview.ts';
import { connectGarden } from '../connect.ts';
import type { Context } from '../context.ts';
import { EXIT, explain } from '../errors.ts';
import { openGarden } from '../garden.ts';
import { SEED_KIND, WORKER_CLUSTER_KIND } from '../kinds.ts';
import { printObject } from '../output.ts';
import { type Cell, renderTable } from '../render/table.ts';
import { textCell } from '../render/text.ts';
import { tableOf } from './get.ts';

const PEEK_MS = 5000;

/** `coppice status`: exit code 0 when the garden runs and its parts are healthy. */
export async function run(context: Context): Promise<number> {
  const { options, terminal, env, signal, program } = context;
  const garden = await openGarden(env);
  const report = await garden.status();
  const healthy =
    report.phase === 'ready' &&
    report.apiserver?.ready === true &&
    report.components.every((part) => isHealthy(part.state));

  let seeds: KubeObject[] = [];
  let clusters: KubeObject[] = [];
  let trouble = '';
  if (report.apiserver?.ready) {
    try {
      const { client } = await connectGarden(context);
      const peek = AbortSignal.any([signal, AbortSignal.timeout(PEEK_MS)]);
      const lists = [SEED_KIND, WORKER_CLUSTER_KIND].map(({ resource }) => client.list(resource, { signal: peek }));
      [seeds, clusters] = (await Promise.all(lists)).map((list) => list.items) as [KubeObject[], KubeObject[]];
    } catch (error) {
      signal.throwIfAborted();
      trouble = explain(error).message;
    }
  }
  const ok = healthy && trouble === '' && seeds.every(isReady);

  const format = options.text('output');
  if (format === 'json' || format === 'yaml') {
    const brief = (objects: KubeObject[]) =>
      objects.map((object) => ({
        name: object.metadata.name,
        ...(object.metadata.namespace && { namespace: object.metadata.namespace }),
        ready: isReady(object),
      }));
    await printObject(terminal, format, {
      ...report,
      healthy: ok,
      seeds: brief(seeds),
      workerClusters: brief(clusters),
      trouble,
    });
    return ok ? EXIT.ok : EXIT.failed;
  }

  const table = {
    wide: false,
    everywhere: true,
    now: Date.now(),
    paint: terminal.paint,
    ...(terminal.width === undefined ? {} : { width: terminal.width }),
  };
  terminal.print(...headlineText(report, program));
  const components = componentRows(report);
  if (components.length > 0)
    terminal.print('', ...renderTable(['PART', 'STATE', 'PID', 'RESTARTS', 'MESSAGE'], components, table));
  if (seeds.length > 0) terminal.print('', ...tableOf(SEED_KIND, seeds, table));
  if (clusters.length > 0) terminal.print('', ...tableOf(WORKER_CLUSTER_KIND, clusters, table));
  else if (report.apiserver?.ready && trouble === '') terminal.print('', 'There are no clusters yet.');
  if (trouble !== '') terminal.note(`${terminal.notePaint('bad', 'error:')} ${trouble}`);
  return ok ? EXIT.ok : EXIT.failed;
}

/** Whether a part of the garden is healthy. */
function isHealthy(state: ComponentStatus['state']): boolean {
  return state === 'running';
}

/** State of the garden and egress of its pods. */
export function headlineText({ phase, error, notice, apiserver, egress }: GardenStatus, program: string): string[] {
  const says: Record<GardenStatus['phase'], string> = {
    absent: `There is no garden here; "${program} up" creates one.`,
    starting: 'The garden is starting.',
    ready: `The garden is up at ${apiserver?.server}.`,
    stopping: 'The garden is stopping.',
    stopped: `The garden is stopped, and its state is kept; "${program} up" starts it again.`,
    failed: `The garden failed: ${textCell(error)}`,
    unattended: `The garden's daemon was killed, and nothing restarts the garden's processes now; "${program} up" starts the daemon, "${program} stop" stops the processes.`,
  };
  return [says[phase], ...(notice ? [textCell(notice)] : []), ...(egress ? [textCell(egressLine(egress))] : [])];
}

function componentRows(report: GardenStatus): (Cell | string)[][] {
  return report.components.map(({ name, state, pid, restarts, message }) => [
    name,
    { text: textCell(state), tone: isHealthy(state) ? 'good' : 'bad' },
    textCell(pid),
    textCell(restarts),
    textCell(message),
  ]);
}
