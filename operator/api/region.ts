import { configurationProblem } from './errors.ts';

/** A DNS label: with anything else in it, a host that is made of it could be anybody's. */
const REGION = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** Whether a text can be a cloud's region or zone. */
export const isRegion = (text: string): boolean => REGION.test(text);

/** The region, to be made a part of a host's name or of a path. Throws a configuration problem for what can be none. */
export function checkedRegion(region: string): string {
  if (isRegion(region)) return region;
  throw configurationProblem(
    `${JSON.stringify(region.slice(0, 80))} can be no region: it would become part of a host's name`,
    'Name a region of the CloudProfile in spec.region.',
  );
}
