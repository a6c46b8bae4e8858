/** Skills: what was found to work, how sure that is, and how skills lead to each other. */

import type { SkillJson, SkillLinkJson } from "@mneme/client/http";
import { useEffect } from "preact/hooks";
import { useLoad, usePages } from "../api/load";
import { skills } from "../api/services";
import { Badge, Empty, Facts, PageHeader, Show, Time } from "../components/basics";
import { Chart } from "../components/chart";
import { Filters, TextFilter } from "../components/filters";
import { Pages } from "../components/table";
import { Id, Json, Text } from "../components/text";
import { count, duration, num, percent, score, word } from "../format";
import type { PageProps } from "../pages";
import { filter, narrowing, navigate, to, withQuery } from "../router";
import "../styles/remember.css";

const NAMES = ["q", "project", "tag"] as const;
const FOUND = 50;
const [WIDTH, HEIGHT] = [400, 260];

export default function Skills({ rest: [linked] }: PageProps) {
  useEffect(() => {
    if (linked) navigate(`/skills?skill=${encodeURIComponent(linked)}`, { replace: true });
  }, [linked]);
  return (
    <>
      <PageHeader title="Skills" about="Ways of working that held, with how often they did." />
      <Filters names={NAMES}>
        <TextFilter name="q" label="Search" placeholder="a task, in your words" wide />
        <TextFilter name="project" label="Project" />
        <TextFilter name="tag" label="Label" />
      </Filters>
      <div class={filter("skill") ? "split open" : "split"}>
        <div class="card list">{filter("q") ? <Found /> : <List />}</div>
        {filter("skill") && <Detail key={filter("skill")} id={filter("skill")} />}
      </div>
    </>
  );
}

function skillFilter() {
  return { ...narrowing({ project: "project" }), ...(filter("tag") && { tags: [filter("tag")] }) };
}

function List() {
  const inputs = [filter("project"), filter("tag")];
  const pages = usePages<SkillJson>(async (pageToken, signal) => {
    const asked = { filter: skillFilter(), pageSize: 50, pageToken };
    const page = await skills.listSkills(asked, { signal });
    return { items: page.skills ?? [], next: page.nextPageToken, total: num(page.totalSize) };
  }, inputs);
  return (
    <Pages of={pages} names={["skill", "skills"]} empty={<None filtered={inputs.some(Boolean)} />}>
      {(items) => <Rows of={items} />}
    </Pages>
  );
}

function Found() {
  const asked = { task: filter("q"), filter: skillFilter(), limit: FOUND };
  const found = useLoad(
    (signal) => skills.searchSkills(asked, { signal }),
    [JSON.stringify(asked)],
  );
  return (
    <Show of={found} lines={6}>
      {({ results = [] }) =>
        results.length ? <Rows of={results.flatMap((one) => one.skill ?? [])} /> : <None filtered />
      }
    </Show>
  );
}

function Rows({ of }: { of: readonly SkillJson[] }) {
  return (
    <ul class="rows">
      {of.map((skill) => (
        <li key={skill.id}>
          <a
            class="row"
            href={withQuery({ skill: skill.id })}
            aria-current={filter("skill") === skill.id ? "true" : undefined}
          >
            <span class="row-title">{skill.name}</span>
            <Held of={skill} />
            <span class="row-text">{skill.description}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

/** How often it held, and what is at least to be expected. */
function Held({ of }: { of: SkillJson }) {
  const { record } = of;
  if (!num(record?.uses)) return <Badge>not used yet</Badge>;
  return (
    <Badge tone={num(record?.lowerBound) >= 0.5 ? "good" : "warn"}>
      {count(record?.successes)} of {count(record?.uses)}, at least {percent(record?.lowerBound, 0)}
    </Badge>
  );
}

function Detail({ id }: { id: string }) {
  const loaded = useLoad((signal) => skills.getSkill({ skillId: id }, { signal }), [id]);
  return (
    <section class="card detail" aria-label="The skill">
      <p class="detail-close">
        <a href={withQuery({ skill: "" })}>Close</a>
      </p>
      <Show of={loaded}>
        {({ skill = {}, links = [] }) => (
          <div class="stack">
            <div>
              <h2 class="title">{skill.name}</h2>
              <Held of={skill} />
            </div>
            <Text value={skill.description ?? ""} />
            {skill.code && (
              <div>
                <h3>Code</h3>
                <Text value={skill.code} mono />
              </div>
            )}
            {links.length > 0 && <Graph skill={skill} links={links} />}
            <Facts of={factsOf(skill)} />
            {skill.findings && Object.keys(skill.findings).length > 0 && (
              <details>
                <summary>What its episodes show</summary>
                <Json value={skill.findings} />
              </details>
            )}
          </div>
        )}
      </Show>
    </section>
  );
}

function factsOf(skill: SkillJson) {
  const { record } = skill;
  return [
    [
      "Expected",
      num(record?.uses) > 0 &&
        `${percent(record?.lowerBound, 0)} to ${percent(record?.upperBound, 0)}`,
    ],
    ["Reward on average", record?.averageReward !== undefined && score(record.averageReward)],
    ["Takes", record?.averageLatencyMs !== undefined && duration(record.averageLatencyMs)],
    ["Last used", record?.lastUsedAt && <Time value={record.lastUsedAt} />],
    ["Project", skill.project],
    ["Labels", skill.tags?.join(", ")],
    [
      "From episodes",
      skill.sourceEpisodeIds?.length
        ? skill.sourceEpisodeIds.map((one) => (
            <Id key={one} value={one} href={to("episodes", one)} />
          ))
        : undefined,
    ],
    ["Changed", <Time key="time" value={skill.updatedAt} exact />],
    ["Id", <Id key="id" value={skill.id ?? ""} />],
  ].filter(([, value]) => value !== false) as [string, preact.ComponentChild][];
}

/** The skill in the middle, those it is linked with around it; each leads on. */
function Graph({ skill, links }: { skill: SkillJson; links: readonly SkillLinkJson[] }) {
  const others = links.map((link) => {
    const isParent = link.parentSkillId === skill.id;
    return {
      link,
      id: (isParent ? link.childSkillId : link.parentSkillId) ?? "",
      name: (isParent ? link.childName : link.parentName) ?? "",
      says: `${isParent ? "has" : "is"} ${word(link.relationship, "SKILL_RELATIONSHIP_")}`,
    };
  });
  return (
    <Chart
      title="How it is linked"
      head={["Skill", "Link"]}
      rows={others.map((one) => [one.name, one.says])}
    >
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} class="graph">
        <title>Linked skills</title>
        {others.map((one, at) => {
          const [x, y] = around(at, others.length);
          return (
            <g key={`${one.id} ${one.says}`}>
              <line x1={WIDTH / 2} y1={HEIGHT / 2} x2={x} y2={y} />
              <text
                class="edge"
                x={(WIDTH / 2 + x) / 2}
                y={(HEIGHT / 2 + y) / 2}
                text-anchor="middle"
              >
                {one.says}
              </text>
              <a href={withQuery({ skill: one.id })} aria-label={`${one.name}, ${one.says}`}>
                <circle cx={x} cy={y} r="9" />
                <text x={x} y={y < HEIGHT / 2 ? y - 15 : y + 25} text-anchor="middle">
                  {short(one.name)}
                </text>
              </a>
            </g>
          );
        })}
        <circle cx={WIDTH / 2} cy={HEIGHT / 2} r="13" />
        <text x={WIDTH / 2} y={HEIGHT / 2 + 30} text-anchor="middle">
          {short(skill.name ?? "")}
        </text>
      </svg>
    </Chart>
  );
}

function around(at: number, of: number): [number, number] {
  const angle = (at / of) * 2 * Math.PI - Math.PI / 2;
  return [WIDTH / 2 + Math.cos(angle) * WIDTH * 0.3, HEIGHT / 2 + Math.sin(angle) * HEIGHT * 0.36];
}

function short(name: string): string {
  return name.length > 22 ? `${name.slice(0, 21)}…` : name;
}

function None({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No skill is like that.">
        <p>Take a filter away, or ask in other words.</p>
      </Empty>
    );
  }
  return (
    <Empty title="There is no skill yet.">
      <p>Skills are made of episodes that went well:</p>
      <pre>
        <code>mneme skills consolidate</code>
      </pre>
    </Empty>
  );
}
