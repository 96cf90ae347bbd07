// On hovering a number says what its row's link leads to; the text is set as text, so it is nothing else.
document.addEventListener("pointerover", event => {
  const cell = event.target.closest("td.number:not([data-traced])");
  const head = cell && cell.closest("table").tHead?.rows[0].cells[cell.cellIndex];
  const link = cell && [cell.closest("tr"), cell.closest("tbody"), head].map(part => part?.querySelector("a.trace")).find(Boolean);
  if (!link) return;
  cell.dataset.traced = "";
  const lines = document.querySelector(link.getAttribute("href")).textContent.split("\n").map(line => line.trim());
  cell.title = [cell.title, ...lines].filter(Boolean).join("\n");
});
// A tap, or a click, says what is nearest: a finger is wider than a mark.
const told = document.createElement("output");
told.id = "told";
document.body.append(told);
const apart = (one, event) => {
  const box = one.getBoundingClientRect();
  return Math.hypot(Math.max(box.left - event.clientX, 0, event.clientX - box.right), Math.max(box.top - event.clientY, 0, event.clientY - box.bottom));
};
document.addEventListener("click", event => {
  const drawing = event.target.closest("svg"), cell = event.target.closest("td[title]");
  const near = drawing ? [...drawing.querySelectorAll("title")].map(one => one.parentNode)
    .filter(one => one !== drawing && one.checkVisibility()).map(one => [apart(one, event), one]).sort((one, other) => one[0] - other[0])[0] : null;
  told.textContent = near && near[0] < 30 ? near[1].querySelector("title").textContent : !drawing && cell ? cell.title : "";
});
document.addEventListener("keydown", event => { if (event.key === "Escape") told.textContent = ""; });
// Where a link leads into something folded, it opens.
const unfold = () => {
  let place = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  for (let part = place; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  place.scrollIntoView();
};
addEventListener("hashchange", unfold);
// On a narrow page, where a table's head is not shown, each cell says what it is.
document.documentElement.classList.add("scripts");
for (const table of document.querySelectorAll("table.rows")) {
  const heads = [...table.tHead.rows[0].cells].map(one => [...one.childNodes].map(part => part.textContent || " ").join("").trim());
  for (const row of table.tBodies[0].rows) for (const cell of row.cells) if (cell.tagName === "TD") cell.dataset.head = heads[cell.cellIndex];
}
function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
// Where the browser can unpack, a file is saved as plain CSV; without scripts the link saves it packed.
if (typeof DecompressionStream !== "undefined") for (const link of document.querySelectorAll("a.csv")) {
  link.textContent = link.textContent.replace(".gz", "");
  link.addEventListener("click", async event => {
    event.preventDefault();
    const packed = Uint8Array.from(atob(link.href.split(",")[1]), sign => sign.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    save(new Blob([await new Response(stream).arrayBuffer()], {type: "text/csv"}), link.textContent);
  });
}
for (const figure of document.querySelectorAll("figure")) {
  const button = document.createElement("button");
  const name = figure.dataset.name || figure.querySelector("figcaption").textContent.trim();
  button.type = "button";
  button.className = "svg";
  button.textContent = "SVG";
  button.setAttribute("aria-label", `save ${name} as SVG`);
  button.addEventListener("click", () => {
    const drawing = figure.querySelector("svg"), copy = drawing.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    // What other programs draw it with: no variables, no page's style, a background of its own.
    const shapes = "g, path, circle, polyline, polygon, rect, text", copies = copy.querySelectorAll(shapes);
    drawing.querySelectorAll(shapes).forEach((shape, number) => {
      const style = getComputedStyle(shape);
      for (const name of ["display", "color", "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "font-family", "font-size"]) copies[number].style.setProperty(name, style.getPropertyValue(name));
    });
    const [left, top, width, height] = drawing.getAttribute("viewBox").split(" ");
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({x: left, y: top, width, height, fill: getComputedStyle(document.body).backgroundColor})) paper.setAttribute(name, value);
    copy.querySelector("desc").after(paper);
    save(new Blob([new XMLSerializer().serializeToString(copy)], {type: "image/svg+xml"}), name.replace(/[^A-Za-z0-9]+/g, "-") + ".svg");
  });
  figure.append(button);
}
