"""Charts: described once, drawn on pages, in notebooks, in files and in terminals."""

from sfumato.charts.axis import Axis, label_axis, linear_axis, log_axis, time_axis
from sfumato.charts.bars import Bar, BarChart
from sfumato.charts.chart import Chart
from sfumato.charts.columns import Column, ColumnChart
from sfumato.charts.curves import Curve, CurveChart, Marker, Rule
from sfumato.charts.heat import HeatMap, Square
from sfumato.charts.multiples import Panel, SmallMultiples
from sfumato.charts.palette import DARK, LIGHT, css_variables

__all__ = [
    "DARK",
    "LIGHT",
    "Axis",
    "Bar",
    "BarChart",
    "Chart",
    "Column",
    "ColumnChart",
    "Curve",
    "CurveChart",
    "HeatMap",
    "Marker",
    "Panel",
    "Rule",
    "SmallMultiples",
    "Square",
    "css_variables",
    "label_axis",
    "linear_axis",
    "log_axis",
    "time_axis",
]
