import { writeIfChanged } from '../host/files.ts';
import { networkNames, occupiedRanges } from '../host/network.ts';
import { choosePorts, isPortFree, type Ports } from '../host/ports.ts';
import { chooseRanges, rangeConflicts } from '../host/ranges.ts';
import { runsStill } from '../processes/processes.ts';
import { knownFields } from '../state/fields-of-garden.ts';
import type { GardenState, StateDirectory } from '../state/state.ts';

/** Settings chosen once, when a garden is created. */
type Chosen = Pick<GardenState, 'id' | 'createdAt' | 'ports' | 'ranges'>;
type Say = (stage: string, message: string) => void;

/** Writes the garden's state. Earlier choices are kept; only ports taken by other programs are chosen again. */
export async function prepareState(
  directory: StateDirectory,
  { seed, rootless }: { seed: GardenState['seed']; rootless: boolean },
  say: Say,
): Promise<GardenState> {
  const before = await directory.read();
  const known = await knownFields(directory);
  await writeIfChanged(directory.fieldsFile, JSON.stringify(known, undefined, 1));
  // A rootless seed's network is not connected to the host's.
  const isJoined = seed === 'local' && !rootless;
  const occupied = isJoined ? await occupiedRanges(networkNames(directory.id).link) : [];
  const chosen = before ? await chosenBefore(directory, before, occupied, say) : await choose(directory.id, occupied);
  const state: GardenState = { ...chosen, seed, ...(rootless && { rootless }) };
  await directory.write(state);
  return state;
}

async function choose(id: string, occupied: readonly string[]): Promise<Chosen> {
  const ranges = chooseRanges(id, occupied);
  if (!ranges) throw new Error('no free address range for the seed: routes of this machine use all of 10.160.0.0/11');
  return { id, createdAt: new Date().toISOString(), ports: await choosePorts(id), ranges };
}

async function chosenBefore(
  directory: StateDirectory,
  before: GardenState,
  occupied: readonly string[],
  say: Say,
): Promise<Chosen> {
  const clash = rangeConflicts(before.ranges, occupied);
  if (clash.length > 0)
    say('seed', `the seed's address ranges overlap with ${clash.join(', ')}, which this machine now uses`);
  const ports = await keptPorts(directory, before);
  if (ports !== before.ports) say('garden', 'another program uses a port of the garden: choosing other ports');
  const { rootless: _, ...kept } = before;
  return { ...kept, ports };
}

/** The ports of an existing garden, unless another program has taken one. */
export async function keptPorts(
  directory: StateDirectory,
  { id, ports }: Pick<GardenState, 'id' | 'ports'>,
  isFree = isPortFree,
): Promise<Ports> {
  const own = await Promise.all(['etcd', 'kube-apiserver'].map((name) => runsStill(directory.pidFile(name))));
  // Coppice's own left-over processes hold them: they are taken over or ended later.
  if (own.includes(true)) return ports;
  const free = await Promise.all(Object.values(ports).map((port) => isFree(port)));
  return free.every(Boolean) ? ports : choosePorts(id, isFree);
}
