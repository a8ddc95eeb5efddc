// Draws the figures of the report, sorts its tables and follows the light or dark scheme. Loads nothing.
(() => {
  const figures = JSON.parse(document.getElementById('figures').textContent);
  const shown = new Map();

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function themed(layout) {
    const [ink, line, card] = ['--ink', '--line', '--card'].map(colour);
    const themed = { ...layout, font: { ...layout.font, color: ink } };
    themed.hoverlabel = { bgcolor: card, bordercolor: line, font: { color: ink } };
    for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
      themed[axis] = { ...layout[axis], gridcolor: line, zerolinecolor: line, linecolor: line, tickcolor: line };
    }
    return themed;
  }

  function draw(place, name) {
    const { data, layout } = figures[name];
    shown.set(place, name);
    return Plotly.react(place, data, themed(layout), { displaylogo: false, responsive: true });
  }

  function sort(header, column) {
    const body = header.closest('table').tBodies[0];
    const descending = header.getAttribute('aria-sort') !== 'descending';
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const rows = [...body.rows].sort((one, other) => {
      const [first, second] = [value(one), value(other)];
      const order = row_is_number(first, second) ? first - second : first.localeCompare(second);
      return descending ? -order : order;
    });
    for (const other of header.parentElement.cells) {
      other.removeAttribute('aria-sort');
    }
    header.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
    body.append(...rows);
  }

  function row_is_number(...values) {
    return values.every((value) => value !== '' && Number.isFinite(Number(value)));
  }

  for (const header of document.querySelectorAll('table.sortable th')) {
    header.querySelector('button').addEventListener('click', () => sort(header, header.cellIndex));
  }
  for (const button of document.querySelectorAll('.choice button')) {
    button.addEventListener('click', () => {
      for (const other of button.parentElement.children) {
        other.setAttribute('aria-pressed', String(other === button));
      }
      draw(document.getElementById(button.dataset.place), button.dataset.figure);
    });
  }
  const drawn = [...document.querySelectorAll('[data-figure].chart')].map((place) => draw(place, place.dataset.figure));
  Promise.all(drawn).then(() => {
    document.documentElement.dataset.drawn = String(drawn.length);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    for (const [place, name] of shown) {
      draw(place, name);
    }
  });
})();
