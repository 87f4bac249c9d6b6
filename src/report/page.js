"use strict";
// Draws the charts of a report. All text comes from the document in #report and is set as text,
// never as markup; dygraphs gets no text but our own.
(function () {
  const report = JSON.parse(document.getElementById("report").textContent);
  const light = ["#2563c9", "#c2570c", "#0f8a6d", "#8b3fc4", "#c22f63", "#697386"];
  const dark = ["#6ea8ff", "#f79a54", "#4ecfae", "#c792f5", "#f77fa6", "#a3adbd"];
  // The library's legend is markup with style attributes, which the policy forbids; ours is below.
  Dygraph.PLUGINS = Dygraph.PLUGINS.filter(plugin => plugin !== Dygraph.Plugins.Legend);
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  const charts = [];
  const kPaper = 560;  // CSS pixels: fits within margins of an inch
  let printing = false;

  const colour = number => (isDark.matches && !printing ? dark : light)[number % light.length];
  // As page.css has them for paper: while "beforeprint" runs, the style is still that of the screen.
  const paper = {"--grid": "#ddd", "--line": "#bbb", "--soft": "#444", "--shade": "rgba(120, 130, 150, .2)"};
  const variable = name =>
    printing ? paper[name] : getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function shown(value) {
    if (value === null || value === undefined || !isFinite(value)) return "";
    const size = Math.abs(value);
    if (size >= 1000) return Math.round(value).toLocaleString("en");
    return String(Number(value.toPrecision(3)));
  }

  function duration(seconds) {
    if (seconds < 60) return shown(seconds) + " s";
    if (seconds < 3600) return Math.floor(seconds / 60) + ":" + String(Math.floor(seconds % 60)).padStart(2, "0");
    return Math.floor(seconds / 3600) + " h " + String(Math.floor(seconds % 3600 / 60)).padStart(2, "0");
  }

  // Round times: 30 s, 2 min, 6 h, not 1,000 s.
  function timeTicks(from, until, pixels) {
    const wanted = (until - from) / Math.max(2, pixels / 64);
    const round = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];
    let distance = round.find(each => each >= wanted);
    if (wanted < 1) distance = [1, 2, 5, 10].map(n => n * 10 ** Math.floor(Math.log10(wanted))).find(n => n >= wanted);
    if (!distance) distance = 86400 * Math.ceil(wanted / 86400);
    const ticks = [];
    for (let i = Math.ceil(from / distance); i * distance <= until; ++i) {
      ticks.push({v: i * distance, label: duration(i * distance)});
    }
    return ticks;
  }

  function along(axis, value) {
    if (axis === "s") return duration(value);
    return axis + " " + shown(value);
  }

  function legend(place, entries) {
    place.replaceChildren();
    return entries.map(entry => {
      const item = document.createElement("span");
      const name = "http://www.w3.org/2000/svg";
      const picture = document.createElementNS(name, "svg");
      const shape = document.createElementNS(name, entry.area ? "rect" : entry.points ? "circle" : "line");
      const set = entry.area ? {width: 18, height: 8, fill: entry.colour}
        : entry.points ? {cx: 9, cy: 4, r: 4, fill: entry.colour}
        : {x1: 0, x2: 18, y1: 4, y2: 4, stroke: entry.colour, "stroke-width": 2.5,
           "stroke-dasharray": entry.dashed ? "4 3" : "none"};
      for (const key in set) shape.setAttribute(key, set[key]);
      picture.append(shape);
      const value = document.createElement("b");
      item.append(picture, entry.text, value);
      place.append(item);
      return value;
    });
  }

  // One row for each x that any line has; what a line lacks there is null.
  function rows(lines) {
    const all = new Map();
    lines.forEach((line, number) => line.x.forEach((x, i) => {
      if (!all.has(x)) all.set(x, new Array(lines.length).fill(null));
      all.get(x)[number] = line.y[i];
    }));
    return [...all.keys()].sort((a, b) => a - b).map(x => [x, ...all.get(x)]);
  }

  function band(context, graph, line, fill) {
    context.beginPath();
    line.x.forEach((x, i) => context.lineTo(graph.toDomXCoord(x), graph.toDomYCoord(line.high[i])));
    for (let i = line.x.length - 1; i >= 0; --i) {
      context.lineTo(graph.toDomXCoord(line.x[i]), graph.toDomYCoord(line.low[i]));
    }
    context.closePath();
    context.globalAlpha = 0.2;
    context.fillStyle = fill;
    context.fill();
    context.globalAlpha = 1;
  }

  // Highest value worth the room: a few extreme steps must not press all others to the ground.
  function top(lines, limit) {
    let highest = 0;
    for (const line of lines) {
      const highs = [...line.high].sort((a, b) => a - b);
      const means = Math.max(...line.y);
      highest = Math.max(highest, means, Math.min(highs[Math.floor(highs.length * 0.98)] || 0, 2 * means));
    }
    if (limit && highest > limit / 3) highest = Math.max(highest, limit);
    return highest > 0 ? highest * 1.08 : 1;
  }

  function draw(figure, lines, options) {
    const place = figure.querySelector(".plot");
    const names = lines.map((line, i) => "y" + i);
    const shading = lines.filter(line => line.from > 0);
    const limit = options.limit;
    function entries() {
      const all = lines.map(line => ({
        text: line.text + " ", colour: colour(line.number), dashed: line.dashed, points: line.points
      }));
      if (shading.length) all.push({text: options.before, colour: variable("--shade"), area: true});
      if (limit) {
        const text = "limit " + shown(limit) + (limit > options.top ? ", above the chart" : "");
        all.push({text, colour: variable("--soft"), dashed: true});
      }
      return all;
    }
    let values = legend(figure.querySelector(".legend"), entries());
    const settings = () => ({
      colors: lines.map(line => colour(line.number)),
      gridLineColor: variable("--grid"),
      axisLineColor: variable("--line")
    });
    const series = {};
    lines.forEach((line, i) => {
      series[names[i]] = {
        strokePattern: line.dashed ? [5, 4] : null,
        drawPoints: line.points || line.x.length < 40,
        pointSize: line.points ? 4 : 2,
        strokeWidth: line.points ? 0 : 1.6
      };
    });
    const graph = new Dygraph(place, rows(lines), Object.assign(settings(), {
      labels: ["x", ...names],
      series,
      connectSeparatedPoints: true,
      includeZero: true,
      valueRange: [0, options.top],
      dateWindow: options.window || null,
      axes: {
        x: options.axis === "s" ? {ticker: timeTicks} : {axisLabelFormatter: x => shown(x), pixelsPerLabel: 56},
        y: {axisLabelFormatter: y => shown(y), axisLabelWidth: 48, pixelsPerLabel: 36}
      },
      xRangePad: 4,
      highlightCircleSize: 3,
      highlightCallback: (event, x, points) => {
        points.forEach(point => {
          const i = names.indexOf(point.name);
          values[i].textContent = shown(point.yval) + " at " + along(options.axis, x);
        });
      },
      unhighlightCallback: () => values.forEach(value => { value.textContent = ""; }),
      underlayCallback: (context, area, self) => {
        context.save();
        context.beginPath();
        context.rect(area.x, area.y, area.w, area.h);
        context.clip();
        for (const line of shading) {
          context.globalAlpha = lines.length > 1 ? 0.25 / lines.length : 1;
          context.fillStyle = lines.length > 1 ? colour(line.number) : variable("--shade");
          const end = self.toDomXCoord(line.from);
          context.fillRect(area.x, area.y, Math.max(0, end - area.x), area.h);
        }
        context.globalAlpha = 1;
        for (const line of lines) if (line.low) band(context, self, line, colour(line.number));
        if (limit && limit <= self.yAxisRange()[1]) {
          context.strokeStyle = variable("--soft");
          context.setLineDash([4, 3]);
          const y = self.toDomYCoord(limit);
          context.beginPath();
          context.moveTo(area.x, y);
          context.lineTo(area.x + area.w, y);
          context.stroke();
        }
        context.restore();
      }
    }));
    charts.push({graph, refresh: () => {
      // A canvas that changes its size before printing is printed blank, so it is scaled to the paper.
      const scale = printing ? Math.min(1, kPaper / place.clientWidth) : 1;
      place.style.transform = printing ? "scale(" + scale + ")" : "";
      place.style.width = printing ? place.clientWidth + "px" : "";
      place.style.marginBottom = printing ? (scale - 1) * place.clientHeight + "px" : "";
      graph.updateOptions(settings());
      values = legend(figure.querySelector(".legend"), entries());
    }});
    graph.ready(() => figure.setAttribute("data-drawn", String(lines.length)));
  }

  function drawSeries(figure) {
    const name = figure.dataset.series;
    const lines = [];
    let axis = "s";
    let limit = null;
    let before = "warm-up";
    report.runs.forEach((run, number) => {
      const series = run.series[name];
      if (!series) return;
      axis = series.axis;
      if (series.limit && (!limit || series.limit > limit)) limit = series.limit;
      if (run.steady_state.class === "slow-down") before = "before the steady part";
      lines.push({
        number, text: run.letter, x: series.x, y: series.mean, low: series.low, high: series.high,
        from: series.steady_from
      });
    });
    draw(figure, lines, {axis, before, top: top(lines, limit), limit: name === "gpu" ? null : limit});
  }

  function drawScaling(figure) {
    const scaling = report.scaling;
    const x = scaling.points.map(point => point.units);
    const y = scaling.points.map(point => point.samples_per_s);
    const most = Math.max(...x);
    const end = scaling.fit.length ? scaling.fit[scaling.fit.length - 1][0] : most;
    const one = y[0] / scaling.points[0].speedup;
    const lines = [
      {number: 0, text: "measured", x, y, points: true},
      {number: 5, text: "ideal", x: [1, end], y: [one, one * end], dashed: true}
    ];
    if (scaling.fit.length) {
      lines.push({
        number: 1, text: scaling.model + " fit",
        x: scaling.fit.map(point => point[0]), y: scaling.fit.map(point => point[1])
      });
    }
    draw(figure, lines, {axis: scaling.unit, top: one * most * 1.1, window: [0, end * 1.02]});
  }

  for (const figure of document.querySelectorAll("figure[data-series]")) {
    if (figure.dataset.series === "scaling") drawScaling(figure);
    else drawSeries(figure);
  }
  document.querySelectorAll(".letter").forEach((letter, number) => {
    if (report.runs.length > 1) letter.style.background = colour(number);
  });
  const refresh = () => charts.forEach(chart => chart.refresh());
  isDark.addEventListener("change", refresh);
  addEventListener("beforeprint", () => { printing = true; refresh(); });
  addEventListener("afterprint", () => { printing = false; refresh(); });
  document.documentElement.setAttribute("data-charts", String(charts.length));
})();
